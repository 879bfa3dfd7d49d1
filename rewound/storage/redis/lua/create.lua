-- create: KEYS head, journal. ARGV deadline, fields and values of the head in msgpack, record, ...
-- Returns the time of creation; or the existing head, flat; or {'late', time}.
--
-- Create the run if no run has its id. Its index entries were written before, so nothing may be written
-- after the deadline.
local existing = redis.call('HGETALL', KEYS[1])
if #existing > 0 then return existing end
local now = clock()
if late(now, ARGV[1]) then return {'late', now} end
redis.call('HSET', KEYS[1], 'created', now, 'updated', now, unpack(cmsgpack.unpack(ARGV[2])))
push(KEYS[2], ARGV, 3)
return now
