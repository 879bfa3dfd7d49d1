"""Spaces of a run: numbered cells, and headers that are written with them.

All cells of a run are spread over a fixed number of hashes, by runs of 100 numbers, whatever space they
belong to. So one script can make all of them expire or stay; a page, or a burst of elements, touches one or
two; and thousands of small spaces share them without a key of their own. A cell costs its field (the
space's number within the run, and its own) and its value, nothing else.
"""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

from rewound.errors import ClaimLost, JournalMismatch
from rewound.storage.entries import SpaceEntry
from rewound.storage.protocol import Cells, Space
from rewound.storage.redis.keys import Keys, RunKeys
from rewound.storage.redis.runs import lost
from rewound.storage.redis.scripts import SCRIPTS
from rewound.storage.redis.wire import Wire
from rewound.storage.refusals import other_version, unreachable
from rewound.storage.spaces import NO_SPACE, page

__all__ = ["Spaces"]

TOGETHER = 100
"""Cells of consecutive numbers that share a bucket."""


class Spaces:
    """Writes and reads cells, each in one script in the run's slot."""

    def __init__(self, wire: Wire, keys: Keys) -> None:
        self._wire = wire
        self._keys = keys

    async def put(self, cells: Cells) -> int:
        """Write cells and header of a space together; return its new version."""
        claim = cells.claim
        run = self._keys.run(claim.run_id)
        places = Places(run, cells.space)
        header = b"" if cells.header is None else b"=" + cells.header
        words: list[bytes | str] = [b"%d" % claim.epoch, claim.nonce, cells.space, cells.id]
        words += (b"%d" % cells.expected, header)
        for group, numbers in grouped(cells.cells).items():
            words += (places.find(group), b"%d" % (2 * len(numbers)))
            for number in numbers:
                words += (b"%d" % number, cells.cells[number])
        call = SCRIPTS["put"].call(places.keys, *words)
        reply = await self._wire.send(run.tag, call, len(cells.cells) or 1)
        if isinstance(reply, int):
            return reply
        raise _refusal(cells, reply)

    async def read(self, run_id: str, space: str, start: int, count: int) -> Space | None:
        """Read a space's header and a page of its cells; `None` if there is no such run."""
        wanted, run = page(start, count), self._keys.run(run_id)
        places = Places(run, space)
        words: list[bytes | str] = [space]
        for group, numbers in grouped(wanted).items():
            words += (places.find(group), b"%d" % numbers[0], b"%d" % numbers[-1])
        call = SCRIPTS["space"].call(places.keys, *words)
        reply = await self._wire.send(run.tag, call, use="bulk")
        if not reply:
            return None if reply is None else NO_SPACE
        version, header, *values = reply
        pairs = zip(wanted, values, strict=True)
        return Space(version, header, {number: cell for number, cell in pairs if cell is not None})


class Places:
    """The buckets of one space, as a script needs them.

    Attributes:
        keys: the head, the bucket of the space's header, and those that were looked for since.
    """

    def __init__(self, run: RunKeys, space: str) -> None:
        self._run, self._first = run, crc32(space.encode())
        self.keys = [run.head, run.bucket(self._first)]

    def find(self, group: int) -> bytes:
        """Return the position, among the keys, of the bucket of a group."""
        key = self._run.bucket(self._first + group)
        if key not in self.keys:
            self.keys.append(key)
        return b"%d" % (self.keys.index(key) + 1)


def grouped(numbers: Iterable[int]) -> dict[int, list[int]]:
    """Group the numbers of cells as the buckets have them."""
    groups: dict[int, list[int]] = {}
    for number in numbers:
        groups.setdefault(number // TOGETHER, []).append(number)
    return groups


def _refusal(cells: Cells, reply: list[Any]) -> ClaimLost | JournalMismatch:
    if reply[0] == b"lost":
        return ClaimLost(lost(cells.claim, reply))
    if reply[0] == b"missing":
        return JournalMismatch(unreachable(cells))
    return JournalMismatch(other_version(cells, SpaceEntry(cells.space, reply[1])))
