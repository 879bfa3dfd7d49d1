"""A space of a run's cells, as its one writer sees it."""

import secrets
from collections.abc import Mapping

from rewound.storage.protocol import Cells, Claim, Space, Storage

__all__ = ["SpaceWriter"]


class SpaceWriter:
    """Writes one space under a claim, one write at a time, each with an id of its own.

    Args:
        storage: where the run is.
        claim: the right to write it.
        name: the space's name.
    """

    __slots__ = ("_claim", "_count", "_storage", "_token", "name", "version")

    def __init__(self, storage: Storage, claim: Claim, name: str) -> None:
        self._storage = storage
        self._claim = claim
        # A write's id must not repeat when an owner is restarted under the same claim.
        self._token = secrets.token_hex(6)
        self._count = 0
        self.name = name
        self.version = 0

    async def open(self) -> bytes | None:
        """Read the space's header and version; `None` if nothing was written yet."""
        space = await self.read()
        return (space.header or None) if space is not None else None

    async def read(self, start: int = 0, count: int = 0) -> Space | None:
        """Read some cells, and take note of the version."""
        space = await self.look(start, count)
        self.version = 0 if space is None else space.version
        return space

    async def look(self, start: int, count: int) -> Space | None:
        """Read some cells, perhaps while a write is on its way."""
        return await self._storage.space(self._claim.run_id, self.name, start, count)

    async def write(self, header: bytes | None, cells: Mapping[int, bytes]) -> None:
        """Write header and cells. Raises `ClaimLost`, `JournalMismatch` or `StorageError`."""
        self._count += 1
        self.version = await self._storage.put(
            Cells(
                claim=self._claim,
                space=self.name,
                id=f"{self._token}-{self._count}",
                expected=self.version,
                header=header,
                cells=cells,
            )
        )
