-- nodes: KEYS nodes. ARGV prefixes of leases and of owned runs (keys of the same slot).
-- Returns {time, {node, milliseconds left; -2 if it has no lease}, ...}.
--
-- List the nodes. One that has no lease and owns nothing is forgotten on sight.
local result = {clock()}
for _, node in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local left = redis.call('PTTL', ARGV[1] .. node)
  if left < 0 and redis.call('EXISTS', ARGV[2] .. node) == 0 then
    redis.call('ZREM', KEYS[1], node)
  else
    result[#result + 1] = {node, left}
  end
end
return result
