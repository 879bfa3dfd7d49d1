-- put: KEYS head, the bucket of the header, other buckets.
-- ARGV epoch, nonce, space, write id, expected version, header ('' keeps, else '=' and the bytes), then of
-- each group of cells: position of its bucket, number of further arguments, those: number, value, ...
-- Returns the new version. Refused: {'missing'}, {'version', version}, {'lost', node, epoch}.
--
-- Write cells and header of a space. The write that stands in the header is a repeat whose answer was lost.
-- A header is kept as '<version> <space's number> <length of write id>:<write id><header>'.
local head = redis.call('HMGET', KEYS[1], 'epoch', 'nonce', 'node')
if not head[1] then return {'missing'} end
local name = '=' .. ARGV[3]
local old = redis.call('HGET', KEYS[2], name)
local version, number, id, text = 0, nil, nil, ''
if old then
  version, number, id, text = read_header(old)
  if id == ARGV[4] then return version end
end
if not head[3] or head[1] ~= ARGV[1] or head[2] ~= ARGV[2] then return {'lost', head[3] or '', head[1]} end
if version ~= tonumber(ARGV[5]) then return {'version', version} end

number = number or redis.call('HINCRBY', KEYS[1], 'spaces', 1)
if ARGV[6] ~= '' then text = string.sub(ARGV[6], 2) end
local opening = string.format('%.0f %s %d:', version + 1, number, #ARGV[4])
redis.call('HSET', KEYS[2], name, opening .. ARGV[4] .. text)
local at = 7
while at < #ARGV do
  local key, last = KEYS[tonumber(ARGV[at])], at + 1 + tonumber(ARGV[at + 1])
  local flat = {}
  for i = at + 2, last, 2 do
    flat[#flat + 1] = number .. ':' .. ARGV[i]
    flat[#flat + 1] = ARGV[i + 1]
  end
  redis.call('HSET', key, unpack(flat))
  at = last + 1
end
return version + 1
