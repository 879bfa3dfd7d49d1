-- release: KEYS head, journal, mail, watch, those of the cells. ARGV deadline, epoch, nonce, retention, wake,
-- due.
-- Returns what common.lua calls settled, {'lost', node, epoch}, {'late', time}, or {'cells'} if their keys are
-- lacking. A run that is gone needs no release.
--
-- Release a claim, unless mail is unread: whoever posted it counts on this owner.
local head = redis.call('HMGET', KEYS[1], 'epoch', 'nonce', 'node', 'mail', 'alarm', 'status', 'reactor', 'expires')
if not head[1] then return cmsgpack.pack(settled(true)) end
if head[1] ~= ARGV[2] or head[2] ~= ARGV[3] then return {'lost', head[3] or '', head[1]} end
if not head[3] then return cmsgpack.pack(settled(true, head[5], head[8], head[6], head[7])) end
if tonumber(head[4] or 0) > 0 then return cmsgpack.pack(settled(false, '', '', head[6], head[7])) end
if lacks_cells(KEYS, 4) then return {'cells'} end
local now = clock()
if late(now, ARGV[1]) then return {'late', now} end
set_alarm(KEYS[1], ARGV[6], ARGV[3])
local expires = give_up(KEYS, now, ARGV[4], ARGV[5])
return cmsgpack.pack(settled(true, head[5], expires, head[6], head[7]))
