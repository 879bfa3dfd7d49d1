-- space: KEYS head, the bucket of the header, other buckets.
-- ARGV space, then of each group of cells: position of its bucket, first and last number.
-- Returns false if there is no such run, {} if there is no such space; else {version, header, cell, ...}.
--
-- Read a header and cells together, so that they fit. A cell that is not there is false.
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local header = redis.call('HGET', KEYS[2], '=' .. ARGV[1])
if not header then return {} end
local version, number, _, text = read_header(header)
local result = {version, text}
for at = 2, #ARGV, 3 do
  local fields = {}
  for cell = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]) do
    fields[#fields + 1] = number .. ':' .. string.format('%.0f', cell)
  end
  local values = redis.call('HMGET', KEYS[tonumber(ARGV[at])], unpack(fields))
  for i = 1, #fields do result[#result + 1] = values[i] end
end
return result
