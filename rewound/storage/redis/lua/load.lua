-- load: KEYS head, journal. ARGV first, last record.
-- Returns {head, flat; records}.
--
-- Read both together, so that they fit.
return {redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], ARGV[1], ARGV[2])}
