-- post: KEYS head, mail, reply. ARGV deadline, mail id, sender, body, the channels' prefix, run id.
-- Returns false if there is no such run; {'late', time}; else {1, or 0 if it was answered before; head, flat}.
--
-- Store mail once: the same id again, unread or answered, changes nothing. A letter is kept as
-- '<number> <length of sender>:<sender><body>'.
local head = redis.call('HGETALL', KEYS[1])
if #head == 0 then return false end
if redis.call('EXISTS', KEYS[3]) == 1 then return {0, head} end
local now = clock()
if late(now, ARGV[1]) then return {'late', now} end
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 0 then
  local number = redis.call('HINCRBY', KEYS[1], 'posted', 1)
  redis.call('HSET', KEYS[2], ARGV[2], number .. ' ' .. #ARGV[3] .. ':' .. ARGV[3] .. ARGV[4])
  redis.call('HINCRBY', KEYS[1], 'mail', 1)
  expire_with(KEYS[2], KEYS[1])
end
local node = redis.call('HGET', KEYS[1], 'node')
if node then redis.call('PUBLISH', ARGV[5] .. node, 'mail ' .. ARGV[6]) end
return {1, redis.call('HGETALL', KEYS[1])}
