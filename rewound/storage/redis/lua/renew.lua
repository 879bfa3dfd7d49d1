-- renew: KEYS lease. ARGV milliseconds.
-- Returns {1, or 0 if it has expired; time}.
--
-- An expired lease never comes back: whoever saw that may have claimed the node's runs.
return {redis.call('PEXPIRE', KEYS[1], ARGV[1]), clock()}
