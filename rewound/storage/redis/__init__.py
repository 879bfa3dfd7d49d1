"""Runs in Redis or Valkey.

`storage` is the face; `backend` the whole in one asyncio loop; `wire` and `lane` carry commands in
batches; `runs`, `mailroom`, `leases`, `attention`, `listing` and `upkeep` say what is done; `index` and
`keys` how it is found again; the rules stand in `lua/`.
"""

from rewound.storage.redis.storage import RedisStorage, open_redis

__all__ = ["RedisStorage", "open_redis"]
