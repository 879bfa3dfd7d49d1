"""Heads of many runs at once."""

import asyncio
from collections.abc import Iterable

from rewound.storage.redis.heads import Stored, read_head
from rewound.storage.redis.keys import Keys
from rewound.storage.redis.scripts import pack
from rewound.storage.redis.wire import Wire

__all__ = ["read_heads"]


async def read_heads(wire: Wire, keys: Keys, run_ids: Iterable[str]) -> dict[str, Stored]:
    """Read the heads of the runs that are there, in one batch for each server."""
    wanted = {run_id: keys.run(run_id) for run_id in run_ids}
    replies = await asyncio.gather(
        *(wire.send(run.tag, pack((b"HGETALL", run.head))) for run in wanted.values())
    )
    heads = (read_head(run_id, flat) for run_id, flat in zip(wanted, replies, strict=True))
    return {stored.head.run_id: stored for stored in heads if stored is not None}
