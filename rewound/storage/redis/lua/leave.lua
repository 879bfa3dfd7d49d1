-- leave: KEYS lease, nodes, runs it owns. ARGV node.
--
-- End a node's lease; forget the node unless it may still own runs.
redis.call('DEL', KEYS[1])
if redis.call('EXISTS', KEYS[3]) == 0 then redis.call('ZREM', KEYS[2], ARGV[1]) end
return 0
