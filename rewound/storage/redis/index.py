"""The index: which runs there are, and which of them need somebody.

Index and runs live in different slots, so order decides. Every entry is written before the write to the
run that needs it and removed after the one that ends the need: a crash in between leaves a stale entry,
which the sweep drops on sight, and never a missing one. Three rules make that hold:

1.  An entry that needs an owner's look (owner, wake, timer) is named after the one write that needs it,
    so its removal cannot hit an entry that another write counts on.
2.  A stale entry may be one whose run is about to be written. It is dropped only when it is older than
    `KEPT` seconds, and a run refuses a write that is more than `PROMPT` seconds later than its entry.
3.  On one server both leave in one batch, in order. On a cluster the entries are awaited first.
"""

import time
from collections.abc import Callable
from typing import Any, Self, cast

import msgspec

from rewound.storage.redis.keys import Keys
from rewound.storage.redis.scripts import SCRIPTS
from rewound.storage.redis.wire import Wire, look_away

__all__ = ["KEPT", "Changes", "Index", "ServerClock"]

KEPT = 60.0
PROMPT = 15.0
SENT_KEPT = 86_400 * 7

encode = msgspec.msgpack.Encoder().encode


class ServerClock:
    """The server's time, as well as this process knows it."""

    def __init__(self) -> None:
        self._offset = 0.0

    def set(self, now: bytes | float) -> float:
        """Take over what the server just said; return it."""
        seconds = float(now)
        self._offset = seconds - time.monotonic()
        return seconds

    def now(self) -> float:
        """Return unix seconds."""
        return time.monotonic() + self._offset


class Changes:
    """Changes of the index that happen together: see lua/index.lua."""

    def __init__(self) -> None:
        self._keys: dict[bytes, int] = {}
        self._changes: list[tuple[int, str, float | bool, str]] = []

    def __bool__(self) -> bool:
        return bool(self._changes)

    def add(self, key: bytes, member: str, score: float | None = None) -> Self:
        """Set an entry's score; `None` is the server's time."""
        return self._do(key, "add", score, member)

    def new(self, key: bytes, member: str, score: float | None = None) -> Self:
        """Set an entry's score, if there is no such entry."""
        return self._do(key, "new", score, member)

    def remove(self, key: bytes, member: str) -> Self:
        """Remove an entry."""
        return self._do(key, "rem", None, member)

    def drop(self, key: bytes, member: str, score: float) -> Self:
        """Remove an entry unless its score has changed."""
        return self._do(key, "drop", score, member)

    def suspect(self, key: bytes, member: str, score: float) -> Self:
        """Drop an entry and let it come up once more, marked, when it is certainly stale."""
        return self._do(key, "suspect", score, member)

    def note(self, key: bytes, text: str) -> Self:
        """Keep a text for a week."""
        return self._do(key, "set", SENT_KEPT, text)

    def keep(self, key: bytes, seconds: float) -> Self:
        """Let a text live for so many seconds from now on."""
        return self._do(key, "ttl", int(seconds), "")

    def packed(self, told: bytes = b"") -> bytes:
        """Pack the call; `told` is `1` to learn what each change did: nobody else waits to read it."""
        return SCRIPTS["index"].spell(tuple(self._keys), told, encode(self._changes))

    def _do(self, key: bytes, what: str, number: float | None, member: str) -> Self:
        position = self._keys.setdefault(key, len(self._keys) + 1)
        self._changes.append((position, what, False if number is None else number, member))
        return self


class Index:
    """Writes the index, alone or around a write to a run."""

    def __init__(self, wire: Wire, keys: Keys, clock: ServerClock) -> None:
        self._wire = wire
        self._tag = keys.index_tag
        self._clock = clock

    async def change(self, changes: Changes) -> list[int]:
        """Carry changes out; return what each did."""
        now, results = await self._wire.send(self._tag, changes.packed(b"1"))
        self._clock.set(now)
        return list(results)

    def change_later(self, changes: Changes) -> None:
        """Send changes with the next batch. If they get lost, an entry is stale."""
        if changes:
            self._wire.forget(self._tag, changes.packed())

    async def write(self, before: Changes, tag: bytes, pack: Callable[[str], bytes], weight: int = 1) -> Any:
        """Write entries, then a run.

        Args:
            before: the entries that the run's write needs; without any it has no deadline.
            tag: the run's.
            pack: returns the run's write for a deadline, by the server's clock.
            weight: records that it writes.
        """
        if not before:
            return await self._wire.send(tag, pack(""), weight)
        while True:
            deadline = f"{self._clock.now() + PROMPT:.6f}"
            reply = await self._write_once(before.packed(), tag, pack(deadline), weight)
            if not _is_late(reply):
                return reply
            self._clock.set(reply[1])

    async def _write_once(self, before: bytes, tag: bytes, packed: bytes, weight: int) -> Any:
        entries = self._wire.send(self._tag, before)
        if not self._wire.ordered:
            await entries
            return await self._wire.send(tag, packed, weight)
        reply = self._wire.send(tag, packed, weight)
        try:
            await entries
        except BaseException:
            reply.add_done_callback(look_away)
            reply.cancel()  # what has not left yet must not leave without its entries
            raise
        return await reply


def _is_late(reply: object) -> bool:
    return isinstance(reply, list) and b"late" in cast("list[bytes]", reply)[:1]
