"""Which runs need an owner or a nudge: what dead nodes own, what was woken, whose alarm is due."""

from collections import Counter
from typing import Any, Literal

from msgspec import Struct

from rewound.storage.protocol import Attention, Need
from rewound.storage.redis.heads import Stored
from rewound.storage.redis.index import KEPT, Changes, Index, ServerClock
from rewound.storage.redis.keys import SUSPECT, Keys, split_entry
from rewound.storage.redis.reading import read_heads
from rewound.storage.redis.scripts import SCRIPTS
from rewound.storage.redis.wire import Wire
from rewound.storage.sweeping import read_cursor, write_cursor

__all__ = ["Sweeper"]

Reason = Literal["dead", "wake", "alarm"]


class Found(Struct, frozen=True):
    """An index entry: why it is there, whose it is, its score and its name."""

    reason: Reason
    node: str
    score: str
    name: str

    @property
    def run_id(self) -> str:
        """The run it points to."""
        return split_entry(self.name)[0]

    def fits(self, stored: Stored) -> bool:
        """Tell whether the run agrees with the entry."""
        if self.reason == "dead":
            return stored.head.node == self.node
        if self.reason == "wake":
            return stored.woken or stored.head.mail > 0
        return stored.head.due is not None and stored.alarm == split_entry(self.name)[1]

    def concerns(self, node: str, stored: Stored) -> bool:
        """Tell whether it is for this node to look: another live owner looks after his own."""
        return self.reason == "dead" or stored.head.node in (None, node)


class Sweeper:
    """Reads index entries and compares each with its run; the run is right."""

    def __init__(self, wire: Wire, keys: Keys, index: Index, clock: ServerClock) -> None:
        self._wire = wire
        self._keys = keys
        self._index = index
        self._clock = clock

    async def attention(
        self, node: str, reactors: frozenset[str], lease: float, cursor: str | None = None, limit: int = 100
    ) -> Attention:
        """Find runs of these reactors that need an owner or a nudge, in bounded pages."""
        found, now = await self._look(cursor, limit)
        heads = await read_heads(self._wire, self._keys, {entry.run_id for entry in found})
        wanted: dict[str, Found] = {}
        unknown: dict[str, str] = {}
        stale: list[Found] = []
        for entry in found:
            stored = heads.get(entry.run_id)
            if stored is None or not entry.fits(stored):
                stale.append(entry)
            elif entry.concerns(node, stored):
                known = stored.head.reactor in reactors
                wanted.setdefault(entry.run_id, entry) if known else unknown.update({entry.run_id: ""})
        self._drop(stale, now)
        lost = await self._defer([entry for entry in wanted.values() if entry.reason == "alarm"], lease)
        needs = [Need(heads[run].head, entry.reason) for run, entry in wanted.items() if run not in lost]
        reactors_left = Counter(heads[run].head.reactor for run in unknown)
        return Attention(needs, dict(reactors_left), _cursor(found[-1]) if len(found) == limit else None)

    async def _look(self, cursor: str | None, limit: int) -> tuple[list[Found], float]:
        keys = self._keys
        place = ("dead", "", "", "") if cursor is None else read_cursor(cursor, tuple[Reason, str, str, str])
        words = (keys.leases, keys.owners, str(limit), *place)
        call = SCRIPTS["sweep"].call((keys.nodes, keys.wake, keys.timer), *words)
        now, *rows = await self._wire.send(keys.index_tag, call)
        found = [Found(*(word.decode() for word in row)) for row in rows]
        return found, self._clock.set(now)

    def _drop(self, entries: list[Found], now: float) -> None:
        """Drop what the runs do not confirm, unless a write that does may still be on its way."""
        keys, changes = self._keys, Changes()
        for entry in entries:
            score = float(entry.score)
            if entry.reason == "alarm":
                doubt = changes.drop if entry.name.endswith(SUSPECT) else changes.suspect
                doubt(keys.timer, entry.name, score)
            elif score < now - KEPT:
                key = keys.wake if entry.reason == "wake" else keys.owner(entry.node)
                changes.drop(key, entry.name, score)
        self._index.change_later(changes)

    async def _defer(self, alarms: list[Found], lease: float) -> set[str]:
        """Move alarms one lease ahead; return the runs whose alarm another node was faster to move."""
        if not alarms:
            return set()
        words = [word for entry in alarms for word in (entry.score, entry.name)]
        call = SCRIPTS["defer"].call((self._keys.timer,), repr(lease), *words)
        taken: list[Any] = await self._wire.send(self._keys.index_tag, call)
        return {entry.run_id for entry, mine in zip(alarms, taken, strict=True) if not mine}


def _cursor(last: Found) -> str:
    return write_cursor((last.reason, last.node, last.score, last.name))
