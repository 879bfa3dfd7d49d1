-- join: KEYS lease, nodes. ARGV node, milliseconds.
-- Returns the time.
--
-- Start a node's lease. Its id is used once, so there is none yet, or this is a repeat.
redis.call('ZADD', KEYS[2], clock(), ARGV[1])
redis.call('SET', KEYS[1], '1', 'PX', ARGV[2])
return clock()
