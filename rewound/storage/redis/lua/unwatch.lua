-- unwatch: KEYS head, watch. ARGV channel.
--
-- End `watch`. The head remembers whether anybody watches, so that an append need not look.
redis.call('HDEL', KEYS[2], ARGV[1])
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('HDEL', KEYS[1], 'watched') end
return 0
