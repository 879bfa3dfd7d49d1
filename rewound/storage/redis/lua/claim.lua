-- claim: KEYS head, journal, mail, watch, those of the cells. ARGV deadline, epoch, nonce, new node, new nonce,
-- a node whose lease has expired, or ''.
-- Returns the new epoch; false if somebody else was faster or the run is gone; {'late', time}; {'cells'} if
-- their keys are lacking.
--
-- A compare-and-set on epoch and nonce, of a run that has no owner or a dead one. An expired lease never
-- comes back, so the caller may look at it before. A claimed run does not expire.
local head = redis.call('HMGET', KEYS[1], 'epoch', 'nonce', 'node')
if head[3] == ARGV[4] and head[2] == ARGV[5] then return tonumber(head[1]) end
if head[1] ~= ARGV[2] or head[2] ~= ARGV[3] then return false end
if head[3] and head[3] ~= ARGV[6] then return false end
if lacks_cells(KEYS, 4) then return {'cells'} end
local now = clock()
if late(now, ARGV[1]) then return {'late', now} end
redis.call('HDEL', KEYS[1], 'expires', 'woken')
for i = 1, #KEYS do redis.call('PERSIST', KEYS[i]) end
redis.call('HSET', KEYS[1], 'node', ARGV[4], 'nonce', ARGV[5])
return redis.call('HINCRBY', KEYS[1], 'epoch', 1)
