-- append: KEYS head, journal, mail, watch, reply of each answer, those of the cells.
-- ARGV epoch, nonce, commit, expected length, number of further arguments, then those, then records.
-- The further arguments, if any: deadline, status ('' keeps, else '=' and the text), terminal ('', '0', '1'),
-- retain ('0', '1'), due, release, wake, retention, the channels' prefix, seconds that a reply is kept, then
-- mail id and reply of each answer.
-- Returns the new length if nothing else is to be told. Else, in msgpack, {length, unread mail, old status,
-- created, what common.lua calls settled}. Refused: {'missing'}, {'length', length}, {'lost', node, epoch},
-- {'late', time}, {'cells'} if their keys are lacking for a release.
--
-- The commit at the head is a repeat whose answer was lost. Otherwise epoch, nonce and length must be the
-- head's. Everything, the removal of answered mail included, happens here or not at all.
local head = redis.call('HMGET', KEYS[1], 'commit', 'epoch', 'nonce', 'node', 'length', 'mail', 'watched')
if not head[1] then return {'missing'} end
local more = tonumber(ARGV[5])
local length, mail = tonumber(head[5]), tonumber(head[6] or 0)
local held = head[4] and head[2] == ARGV[1] and head[3] == ARGV[2]
if head[1] == ARGV[3] then
  if more == 0 and mail == 0 then return length end
  local rest = redis.call('HMGET', KEYS[1], 'status', 'alarm', 'created', 'expires', 'reactor')
  local released = ARGV[11] == '1' and not held
  return cmsgpack.pack({length, mail, rest[1], rest[3], settled(released, rest[2], rest[4], rest[1], rest[5])})
end
if not held then return {'lost', head[4] or '', head[2]} end
if length ~= tonumber(ARGV[4]) then return {'length', length} end
local now = clock()
if more > 0 and late(now, ARGV[6]) then return {'late', now} end
local answers = math.max(0, (more - 10) / 2)
if ARGV[11] == '1' and more > 0 and lacks_cells(KEYS, 4 + answers) then return {'cells'} end

local records = #ARGV - 5 - more
push(KEYS[2], ARGV, 6 + more)
redis.call('HSET', KEYS[1], 'commit', ARGV[3], 'length', length + records, 'updated', now)
local answer = length + records
if more > 0 then
  local old = redis.call('HMGET', KEYS[1], 'status', 'alarm', 'created', 'reactor')
  if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'status', string.sub(ARGV[7], 2)) end
  if ARGV[8] == '1' then redis.call('HSET', KEYS[1], 'terminal', '1') end
  if ARGV[8] == '0' then redis.call('HDEL', KEYS[1], 'terminal') end
  if ARGV[8] ~= '' then redis.call('HDEL', KEYS[1], 'retained') end
  if ARGV[9] == '1' and redis.call('HEXISTS', KEYS[1], 'terminal') == 1 then
    redis.call('HSET', KEYS[1], 'retained', '1')
  end
  set_alarm(KEYS[1], ARGV[10], ARGV[3])
  for i = 5, 4 + answers do
    local id, reply = ARGV[16 + 2 * (i - 5)], ARGV[17 + 2 * (i - 5)]
    local letter = redis.call('HGET', KEYS[3], id)
    if letter then
      local size, start = string.match(letter, '^%d+ (%d+):()')
      redis.call('HDEL', KEYS[3], id)
      mail = redis.call('HINCRBY', KEYS[1], 'mail', -1)
      redis.call('SET', KEYS[i], reply, 'EX', ARGV[15])
      redis.call('PUBLISH', ARGV[14] .. string.sub(letter, start, start + size - 1), 'reply ' .. id)
    end
  end
  local released, expires = false, ''
  if ARGV[11] == '1' and mail == 0 then
    released = true
    local keys = {KEYS[1], KEYS[2], KEYS[3], KEYS[4]}
    for i = 5 + answers, #KEYS do keys[#keys + 1] = KEYS[i] end
    expires = give_up(keys, now, ARGV[13], ARGV[12])
  end
  local status = ARGV[7] ~= '' and string.sub(ARGV[7], 2) or old[1]
  answer = cmsgpack.pack({answer, mail, old[1], old[3], settled(released, old[2], expires, status, old[4])})
end
if head[7] then
  local watchers = redis.call('HGETALL', KEYS[4])
  for i = 1, #watchers, 2 do redis.call('PUBLISH', watchers[i], watchers[i + 1]) end
end
if type(answer) == 'number' and mail > 0 then return cmsgpack.pack({answer, mail, '', '', settled(false)}) end
return answer
