"""What keeps the index true: expired runs leave it, and after a failover it is completed."""

from collections.abc import Iterable

from rewound.storage.redis.heads import Stored
from rewound.storage.redis.index import Changes, Index, ServerClock
from rewound.storage.redis.keys import Keys, entry_name, split_entry
from rewound.storage.redis.reading import read_heads
from rewound.storage.redis.scripts import pack
from rewound.storage.redis.wire import Wire
from rewound.storage.sweeping import read_cursor, write_cursor

__all__ = ["Upkeep"]

AHEAD = 1.0
"""Seconds by which this process's idea of the server's clock may be behind."""


class Upkeep:
    """Purging and re-indexing, in bounded pages."""

    def __init__(self, wire: Wire, keys: Keys, index: Index, clock: ServerClock) -> None:
        self._wire = wire
        self._keys = keys
        self._index = index
        self._clock = clock

    async def purge(self, limit: int = 100) -> int:
        """Remove at most `limit` expired runs and what indexes hold of them; return how many.

        The runs themselves are gone by then: their keys expire by themselves.
        """
        entries = await self._expiring(limit)
        heads = await self._heads(split_entry(name)[0] for name in entries)
        gone: list[str] = []
        changes = Changes()
        for name, score in entries.items():
            stored = heads.get(split_entry(name)[0])
            if stored is None:
                gone.append(name)
            elif stored.head.expires != score:
                changes.drop(self._keys.expiring, name, score)
                self._expect(changes, stored)
        self._index.change_later(changes)
        return await self.remove(gone)

    async def _expiring(self, limit: int) -> dict[str, float]:
        until = repr(self._clock.now() + AHEAD)
        key = self._keys.expiring
        words = ("ZRANGEBYSCORE", key, "-inf", until, "WITHSCORES", "LIMIT", "0", str(limit))
        flat = await self._wire.send(self._keys.index_tag, pack(words))
        return {name.decode(): float(score) for name, score in zip(flat[::2], flat[1::2], strict=True)}

    async def remove(self, names: list[str]) -> int:
        """Remove what the lists hold of runs that are gone; return how many were listed.

        A run of the same id may be created meanwhile, and find its rows in place just before they go:
        so look again afterwards.

        Args:
            names: their entries among the expiring runs.
        """
        if not names:
            return 0
        changes = Changes()
        for name in names:
            run_id, *lists = split_entry(name)
            changes.remove(self._keys.every, run_id)
            if lists:
                status, reactor = lists
                changes.remove(self._keys.status(status), run_id).remove(self._keys.reactor(reactor), run_id)
            changes.remove(self._keys.expiring, name)
        results = iter(await self._index.change(changes))
        removed = 0
        for name in names:
            removed += next(results)
            for _ in split_entry(name):
                next(results)
        back = Changes()
        for stored in (await self._heads(split_entry(name)[0] for name in names)).values():
            self._list(back, stored)
        self._index.change_later(back)
        return removed

    async def scan(self, cursor: str | None = None, limit: int = 100) -> str | None:
        """Re-index one page of all runs after a failover that may have lost index entries."""
        place, position = (0, "0") if cursor is None else read_cursor(cursor, tuple[int, str])
        words = ("SCAN", position, "MATCH", self._keys.heads, "COUNT", str(limit))
        following, found = await self._wire.send_to(place, pack(words))
        changes = Changes()
        for stored in (await self._heads(map(self._keys.run_of, found))).values():
            self._list(changes, stored)
            self._expect(changes, stored)
            self._call_for(changes, stored)
        if changes:
            await self._index.change(changes)
        if following != b"0":
            return write_cursor((place, following.decode()))
        return write_cursor((place + 1, "0")) if place + 1 < self._wire.places() else None

    def _list(self, changes: Changes, stored: Stored) -> None:
        keys, head = self._keys, stored.head
        for key in (keys.every, keys.status(head.status), keys.reactor(head.reactor)):
            changes.add(key, head.run_id, head.created)

    def _expect(self, changes: Changes, stored: Stored) -> None:
        head = stored.head
        if head.expires is not None:
            name = entry_name(head.run_id, head.status, head.reactor)
            changes.add(self._keys.expiring, name, head.expires)

    def _call_for(self, changes: Changes, stored: Stored) -> None:
        keys, head = self._keys, stored.head
        if head.node is not None:
            changes.new(keys.owner(head.node), entry_name(head.run_id, head.nonce))
            changes.new(keys.nodes, head.node)
        if head.mail or stored.woken:
            changes.new(keys.wake, entry_name(head.run_id, head.nonce))
        if head.due is not None and stored.alarm is not None:
            changes.new(keys.timer, entry_name(head.run_id, stored.alarm), head.due)

    async def _heads(self, run_ids: Iterable[str]) -> dict[str, Stored]:
        return await read_heads(self._wire, self._keys, set(run_ids))
