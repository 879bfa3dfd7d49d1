"""What is stored of one map: its head, its elements' cells, and their rollback failures beside it."""

from rewound.runtime.engine import mapping
from rewound.runtime.engine.mapping import MapHead
from rewound.runtime.owners.spaces import SpaceWriter
from rewound.storage.protocol import Claim, Storage

__all__ = ["MapStore"]

PAGE = 100
"""Cells that are read at a time."""


class MapStore:
    """A map's head and cells. What is kept is written by `store`; one page of cells is in memory.

    Args:
        storage: where they are.
        claim: the right to write them.
        space: the map's.

    Attributes:
        head: what the elements add up to; change it, then `store`.
    """

    def __init__(self, storage: Storage, claim: Claim, space: str) -> None:
        self.head = MapHead()
        self._space = SpaceWriter(storage, claim, space)
        self._failures = SpaceWriter(storage, claim, f"{space}!")
        self._written = b""
        self._cells: dict[int, bytes] = {}
        self._asides: dict[int, bytes] = {}
        self._page: dict[int, bytes] = {}
        self._first = -1

    async def open(self) -> None:
        """Read the head."""
        stored = await self._space.open()
        if stored is not None:
            self.head, self._written = mapping.decode_head(stored), stored
        await self._failures.open()

    async def cell(self, index: int) -> bytes | None:
        """Read what is stored of an element; `None` if that is nothing."""
        first = index - index % PAGE
        if first != self._first:
            space = await self._space.read(first, PAGE)
            self._page, self._first = (dict(space.cells) if space else {}), first
        return self._page.get(index)

    def keep(self, index: int, cell: bytes) -> None:
        """Have an element's cell stored."""
        self._cells[index] = cell

    def keep_aside(self, index: int, failures: bytes) -> None:
        """Have an element's rollback failures stored, instead of those that were."""
        self._asides[index] = failures

    async def store(self) -> None:
        """Write all that was kept. Failures come first: the head, which counts them, must not lose any."""
        if self._asides:
            asides, self._asides = self._asides, {}
            await self._failures.write(b"", asides)
        head = mapping.encode_head(self.head)
        if self._cells or head != self._written:
            cells, self._cells = self._cells, {}
            await self._space.write(head, cells)
            self._written = head
            self._page.update(
                (index, raw) for index, raw in cells.items() if index - index % PAGE == self._first
            )
