-- watch: KEYS head, watch. ARGV channel, notice.
-- Returns the head, flat; empty if there is no such run.
--
-- Have a notice published to a channel by every append.
local head = redis.call('HGETALL', KEYS[1])
if #head > 0 then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('HSET', KEYS[1], 'watched', '1')
  expire_with(KEYS[2], KEYS[1])
end
return head
