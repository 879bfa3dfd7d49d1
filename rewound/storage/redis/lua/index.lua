-- index: KEYS sorted sets and texts of the index. ARGV '1' to be told the results; the operations in msgpack,
-- each {position of its key, its name, a number (false is the server's time), a member or text}.
-- Returns {time, what each operation returned}, or 1. Stands without common.lua: it is sent as a whole.
--
-- add: set the score. new: set it if the member is absent. rem: remove. drop: remove if the score is
-- still this one. suspect: as drop, but the entry comes up once more after a while, its name marked with
-- a '~'. set: a text that lives for so many seconds. ttl: let a text live for so many seconds more.
local t = redis.call('TIME')
local now = t[1] .. '.' .. string.format('%06d', tonumber(t[2]))
local results = {}
for _, operation in ipairs(cmsgpack.unpack(ARGV[2])) do
  local key, what, number, member = KEYS[operation[1]], operation[2], operation[3] or now, operation[4]
  local result = 0
  if what == 'add' then
    result = redis.call('ZADD', key, number, member)
  elseif what == 'new' then
    result = redis.call('ZADD', key, 'NX', number, member)
  elseif what == 'rem' then
    result = redis.call('ZREM', key, member)
  elseif what == 'set' then
    redis.call('SET', key, member, 'EX', number)
  elseif what == 'ttl' then
    result = redis.call('EXPIRE', key, number)
  elseif tonumber(redis.call('ZSCORE', key, member) or '') == tonumber(number) then
    result = redis.call('ZREM', key, member)
    if what == 'suspect' then redis.call('ZADD', key, tonumber(now) + 60, member .. '~') end
  end
  results[#results + 1] = result
end
return ARGV[1] == '1' and {now, results} or 1
