-- sweep: KEYS nodes, wake, timer. ARGV prefixes of leases and of owned runs (keys of the same slot),
-- limit, and where to go on: 'dead', 'wake' or 'alarm'; node; score and member of the last entry seen.
-- Returns {time, {stage, node, score, member}, ...}.
--
-- List at most `limit` index entries that may need somebody: what dead nodes own, what was woken, what is
-- due. A dead node that owns nothing is forgotten.
local now = clock()
local limit = tonumber(ARGV[3])
local stage, place, score, member = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local result = {now}

-- Ranks make the way on cheap even among thousands of entries with one score. If the last entry seen is
-- gone or was moved, go on at the first one with its score: some may be seen twice, none is missed.
local function collect(name, node, key, most)
  local first = 0
  if member ~= '' then
    if tonumber(redis.call('ZSCORE', key, member) or '') == tonumber(score) then
      first = redis.call('ZRANK', key, member) + 1
    else
      first = redis.call('ZCOUNT', key, '-inf', '(' .. score)
    end
    member = ''
  end
  local rows = redis.call('ZRANGE', key, first, first + limit - #result, 'WITHSCORES')
  for i = 1, #rows, 2 do
    if #result <= limit and tonumber(rows[i + 1]) <= most then
      result[#result + 1] = {name, node, rows[i + 1], rows[i]}
    end
  end
end

if stage == 'dead' then
  local nodes = redis.call('ZRANGE', KEYS[1], 0, -1)
  table.sort(nodes)
  for _, node in ipairs(nodes) do
    if node > place then member = '' end
    if node >= place and #result <= limit and redis.call('EXISTS', ARGV[1] .. node) == 0 then
      local key = ARGV[2] .. node
      if redis.call('EXISTS', key) == 0 then redis.call('ZREM', KEYS[1], node) end
      collect('dead', node, key, math.huge)
    end
  end
  stage, member = 'wake', ''
end
if stage == 'wake' then
  if #result <= limit then collect('wake', '', KEYS[2], math.huge) end
  stage, member = 'alarm', ''
end
if #result <= limit then collect('alarm', '', KEYS[3], tonumber(now)) end
return result
