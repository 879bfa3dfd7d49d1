"""A storage whose server changes, as no fault of one call can show."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from anyio.abc import ObjectReceiveStream
from anyio.lowlevel import checkpoint

from rewound import StorageError
from rewound.storage.forward import Forward
from rewound.storage.protocol import Check, Notice, Storage


class Changing(Forward):
    """A storage on a server that fails over.

    Args:
        inner: the storage that does the work.
        pages: how many pages a scan has.
        fail_joins: how many calls of `join` fail.
        broken_channels: how many channels break at once.
        checks: what the server's settings are.

    Attributes:
        name: the server's identity.
        scanned: the cursors of the pages that were scanned.
        fail_scans: how many scans fail at their second page.
        bug: what the backend raises against its own promises.
    """

    def __init__(
        self,
        inner: Storage,
        *,
        pages: int = 1,
        fail_joins: int = 0,
        broken_channels: int = 0,
        checks: Sequence[Check] = (),
    ) -> None:
        super().__init__(inner)
        self.name = "first"
        self.scanned: list[str | None] = []
        self.fail_scans = 0
        self.bug: Exception | None = None
        self._pages, self._checks = pages, checks
        self._fail_joins, self._broken = fail_joins, broken_channels

    async def identity(self) -> str:
        """Return the server's name."""
        await checkpoint()
        if self.bug is not None:
            raise self.bug
        return self.name

    async def checks(self) -> list[Check]:
        """Return what the test says."""
        await checkpoint()
        return list(self._checks)

    async def join(self, node: str, lease: float) -> None:
        """Join, or fail."""
        if self._fail_joins:
            self._fail_joins -= 1
            raise StorageError("not now")
        await self.inner.join(node, lease)

    async def scan(self, cursor: str | None = None, limit: int = 100) -> str | None:
        """Note the page."""
        await checkpoint()
        if cursor is not None and self.fail_scans:
            self.fail_scans -= 1
            raise StorageError("lost during the scan")
        self.scanned.append(cursor)
        page = int(cursor or 0) + 1
        return str(page) if page < self._pages else None

    @asynccontextmanager
    async def notices(self, node: str) -> AsyncGenerator[ObjectReceiveStream[Notice], None]:
        """Subscribe, or break."""
        if self._broken:
            self._broken -= 1
            raise StorageError("the channel broke")
        async with self.inner.notices(node) as stream:
            yield stream
