-- Stands in front of every other script: what several of them need.
--
-- A run's head is a hash. Fields that are absent mean `None` or false. Besides the fields of `Head` it
-- keeps `origin` (the commit that created it), `alarm` (the name of its timer entry), `woken` (released
-- or created with work left), `watched` (somebody watches it), `posted` (numbers its mail) and `spaces`
-- (numbers its spaces).

-- The server's clock, as text: a Lua number printed by default loses the fraction.
local function clock()
  local t = redis.call('TIME')
  return t[1] .. '.' .. string.format('%06d', tonumber(t[2]))
end

-- A write that relies on an index entry comes late if that entry may have been dropped as stale.
local function late(now, deadline)
  return deadline ~= '' and tonumber(now) > tonumber(deadline)
end

-- RPUSH of any number of values: Lua cannot unpack very many at once.
local function push(key, values, first)
  for low = first, #values, 1000 do
    redis.call('RPUSH', key, unpack(values, low, math.min(low + 999, #values)))
  end
end

-- All keys of a run expire together. keys: the run's keys.
local function expire(keys, now, retention)
  local moment = tonumber(now) + tonumber(retention)
  redis.call('HSET', keys[1], 'expires', string.format('%.6f', moment))
  for i = 1, #keys do redis.call('PEXPIREAT', keys[i], string.format('%.0f', moment * 1000)) end
  return string.format('%.6f', moment)
end

-- A key made later gets the expiry that the head has.
local function expire_with(key, head)
  local left = redis.call('PTTL', head)
  if left >= 0 then redis.call('PEXPIRE', key, left) end
end

-- Set the alarm: due is '' to keep it, '-' to remove it, or unix seconds; alarm names its timer entry.
local function set_alarm(head, due, alarm)
  if due == '-' then
    redis.call('HDEL', head, 'due', 'alarm')
  elseif due ~= '' then
    redis.call('HSET', head, 'due', due, 'alarm', alarm)
  end
end

-- Take the header of a space apart, see put.lua: version, the space's number, write id, header.
local function read_header(value)
  local version, number, size, start = string.match(value, '^(%d+) (%d+) (%d+):()')
  local last = start + tonumber(size)
  return tonumber(version), number, string.sub(value, start, last - 1), string.sub(value, last)
end

-- Whatever makes all keys of a run expire, or stay, must be told the keys of its cells too. They are many
-- and few runs have any, so a caller gives them only when asked to. count: of the keys without them.
local function lacks_cells(keys, count)
  return #keys == count and redis.call('HEXISTS', keys[1], 'spaces') == 1
end

-- What the caller must know to put the index in order: whether the claim was given up, the cause of the alarm
-- before, when the run expires, its status and its reactor. What is left out, or false, is ''.
local function settled(released, alarm, expires, status, reactor)
  return {released, alarm or '', expires or '', status or '', reactor or ''}
end

-- Give the run up: an ended one starts to expire, unless it is retained. Returns when it expires, or ''.
local function give_up(keys, now, retention, wake)
  local state = redis.call('HMGET', keys[1], 'terminal', 'retained')
  redis.call('HDEL', keys[1], 'node', 'woken')
  if wake == '1' then redis.call('HSET', keys[1], 'woken', '1') end
  if state[1] and not state[2] then return expire(keys, now, retention) end
  return ''
end
