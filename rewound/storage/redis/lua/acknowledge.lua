-- acknowledge: KEYS head, journal, mail, watch, those of the cells. ARGV retention.
-- Returns false if there is no such ended run; {'cells'} if their keys are lacking; else
-- {expires or '', status, reactor}.
--
-- Let a retained run expire: from now on, or from its release on if it is claimed.
local head = redis.call('HMGET', KEYS[1], 'terminal', 'retained', 'node', 'status', 'reactor')
if not head[1] then return false end
if lacks_cells(KEYS, 4) then return {'cells'} end
local expires = ''
if head[2] then
  redis.call('HDEL', KEYS[1], 'retained')
  if not head[3] then expires = expire(KEYS, clock(), ARGV[1]) end
end
return {expires, head[4], head[5]}
