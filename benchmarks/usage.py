"""What a case costs its storage: bytes written, bytes kept, connections."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import redis

from rewound.storage import open_storage
from rewound.storage.forward import Forward
from rewound.storage.protocol import Appended, Cells, Commit, Created, NewRun

T = TypeVar("T")

__all__ = ["Counting", "kept", "looking"]

REDIS = ("redis", "rediss", "unix")


class Counting(Forward):
    """A storage that counts what is written through it.

    Args:
        url: the storage that does the work.
        look: called now and then, to notice how many connections there are.

    Attributes:
        records: bytes of records, those of runs.
        cells: bytes of cells and headers, those of elements.
        writes: how many writes there were.
        connections: the most that were seen.
    """

    def __init__(self, url: str, look: Callable[[], int] = lambda: 0) -> None:
        super().__init__(open_storage(url))
        self.records = self.cells = self.writes = self.connections = 0
        self._look = look

    async def _call(self, name: str, operation: Callable[[], Awaitable[T]]) -> T:
        if name in ("append", "put", "create"):
            if self.writes % 100 == 0:
                self.connections = max(self.connections, self._look())
            self.writes += 1
        return await operation()

    async def create(self, new: NewRun, node: str | None) -> Created:
        """Count what a run begins with."""
        self.records += sum(map(len, new.records))
        return await super().create(new, node)

    async def append(self, commit: Commit) -> Appended:
        """Count a run's records."""
        self.records += sum(map(len, commit.records))
        return await super().append(commit)

    async def put(self, cells: Cells) -> int:
        """Count elements, and what stands above them."""
        self.cells += len(cells.header or b"") + sum(map(len, cells.cells.values()))
        return await super().put(cells)


def kept(url: str) -> int:
    """Return how many bytes a storage takes up now; 0 for memory. Close its runtimes first."""
    parts = urlsplit(url)
    if parts.scheme in REDIS:
        with redis.Redis.from_url(url) as client:  # pyright: ignore[reportUnknownMemberType]
            info: Any = client.info("memory")  # pyright: ignore[reportUnknownMemberType]
            return int(info["used_memory_dataset"])
    if parts.scheme == "sqlite" and (path := _file(url)).exists():
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size
    return 0


def looking(url: str) -> Callable[[], int]:
    """Return a function that counts the connections to a storage, as its server or `/proc` knows them."""
    if urlsplit(url).scheme in REDIS:
        client: Any = redis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
        return lambda: int(client.info("clients")["connected_clients"]) - 1  # its own
    path = _file(url)
    return lambda: sum(_leads_to(each, path) for each in Path("/proc/self/fd").glob("*"))


def _leads_to(descriptor: Path, path: Path) -> bool:
    try:
        return descriptor.readlink() == path
    except OSError:
        return False  # closed meanwhile


def _file(url: str) -> Path:
    return Path(unquote(urlsplit(url).path)[1:])
