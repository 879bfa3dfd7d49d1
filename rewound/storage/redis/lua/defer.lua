-- defer: KEYS timer. ARGV seconds, then score and member of each entry.
-- Returns 1 for each entry that this call moved, 0 for one that somebody else moved or removed.
--
-- Move due alarms ahead: whoever moves one carries it out, and it comes back if he dies.
local later = tonumber(clock()) + tonumber(ARGV[1])
local taken = {}
for i = 2, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i + 1])
  local mine = score and tonumber(score) == tonumber(ARGV[i])
  if mine then redis.call('ZADD', KEYS[1], later, ARGV[i + 1]) end
  taken[#taken + 1] = mine and 1 or 0
end
return taken
