"""Lists of runs by status and reactor, newest first."""

from rewound.storage.protocol import Page, Query
from rewound.storage.redis.heads import Stored
from rewound.storage.redis.index import KEPT, Changes, Index, ServerClock
from rewound.storage.redis.keys import Keys
from rewound.storage.redis.reading import read_heads
from rewound.storage.redis.scripts import pack
from rewound.storage.redis.wire import Wire
from rewound.storage.sweeping import read_cursor, write_cursor

__all__ = ["Listing"]

MOST_ROUNDS = 10
"""Bounds one page of a query by status and reactor that few runs match."""

Place = tuple[float, str]
Row = tuple[str, float]


class Listing:
    """Reads the index newest first, and drops rows whose run is gone."""

    def __init__(self, wire: Wire, keys: Keys, index: Index, clock: ServerClock) -> None:
        self._wire = wire
        self._keys = keys
        self._index = index
        self._clock = clock

    async def runs(self, query: Query, cursor: str | None = None, limit: int = 50) -> Page:
        """List heads by status and reactor, newest first, in pages of at most `limit`."""
        place = None if cursor is None else read_cursor(cursor, tuple[float, str])
        found: list[Stored] = []
        for _ in range(MOST_ROUNDS):
            wanted = limit - len(found)
            rows = await self._rows(self._key_of(query), place, wanted)
            found += await self._matching(query, rows)
            place = (rows[-1][1], rows[-1][0]) if len(rows) == wanted else None
            if place is None or len(found) == limit:
                break
        heads = [stored.head for stored in found]
        return Page(heads, None if place is None else write_cursor(place))

    def _key_of(self, query: Query) -> bytes:
        """Return the shortest list that holds all matches."""
        if query.status is not None:
            return self._keys.status(query.status)
        return self._keys.every if query.reactor is None else self._keys.reactor(query.reactor)

    async def _rows(self, key: bytes, place: Place | None, limit: int) -> list[Row]:
        """Read rows after a place. Rows of one instant are in order of their ids."""
        rows: list[Row] = []
        offset = 0
        top = "+inf" if place is None else repr(place[0])
        while len(rows) < limit:
            words = ("ZREVRANGEBYSCORE", key, top, "-inf", "WITHSCORES", "LIMIT", str(offset), str(limit))
            flat = await self._wire.send(self._keys.index_tag, pack(words))
            read = [(name.decode(), float(score)) for name, score in zip(flat[::2], flat[1::2], strict=True)]
            rows += [row for row in read if place is None or (row[1], row[0].encode()) < _bytes(place)]
            offset += limit
            if len(read) < limit:
                break
        return rows[:limit]

    async def _matching(self, query: Query, rows: list[Row]) -> list[Stored]:
        heads = await read_heads(self._wire, self._keys, (run_id for run_id, _ in rows))
        self._drop_gone(query, [row for row in rows if row[0] not in heads])
        return [
            stored
            for stored in heads.values()
            if query.status in (None, stored.head.status) and query.reactor in (None, stored.head.reactor)
        ]

    def _drop_gone(self, query: Query, rows: list[Row]) -> None:
        """Drop old rows without a run; a young one's run may be about to be created."""
        stale = Changes()
        for run_id, created in rows:
            if created < self._clock.now() - KEPT:
                stale.drop(self._key_of(query), run_id, created)
        self._index.change_later(stale)


def _bytes(place: Place) -> tuple[float, bytes]:
    """Compare names as Redis does."""
    return place[0], place[1].encode()
