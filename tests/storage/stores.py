"""Storage under test: each backend behind one harness, and short ways to write runs."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

from rewound.storage import (
    Claim,
    Commit,
    Encoded,
    Faults,
    Head,
    MemoryStorage,
    NewRun,
    Notice,
    Query,
    Storage,
)
from rewound.storage.sqlite import SqliteStorage

LEASE = 30.0
HOUR = 3600.0
PATIENCE = 5.0
REACTORS = frozenset({"Order"})


class ManualClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.123456

    def __call__(self) -> float:
        """Return unix seconds."""
        return self.seconds


class Store(ABC):
    """One backend with one storage object open on it.

    `virtual` tells whether `advance` moves a clock of its own; otherwise it waits, so tests that any
    backend runs advance by fractions of a second, and only those of `virtual_store` by more.
    """

    virtual = False

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.opened = AsyncExitStack()

    async def another(self) -> Storage:
        """Open a second storage object on the same data, as another node does."""
        storage = self.new_storage()
        await storage.open()
        self.opened.push_async_callback(storage.close)
        return storage

    @abstractmethod
    def new_storage(self) -> Storage:
        """Return a storage object on the same data."""

    @abstractmethod
    async def expire(self, node: str) -> None:
        """Make the node's lease expire now, and no other's."""

    @abstractmethod
    async def advance(self, seconds: float) -> None:
        """Let the storage's time pass."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Store", None]:
        """Open the storage, and close it and the others at the end."""
        async with self.opened:
            await self.storage.open()
            self.opened.push_async_callback(self.storage.close)
            yield self


class MemoryStore(Store):
    """Memory, on a clock that stands."""

    virtual = True

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStorage(clock=self.clock)
        super().__init__(self.memory)

    def new_storage(self) -> Storage:
        """Return the same object: that is how runtimes share memory."""
        return self.memory

    async def expire(self, node: str) -> None:
        """End the lease: having none and one that expired are the same here."""
        await self.memory.leave(node)

    async def advance(self, seconds: float) -> None:
        """Move the clock."""
        self.clock.seconds += seconds


class Reversed:
    """A codec that no storage can overlook."""

    def encode(self, plain: bytes, /) -> bytes:
        """Mark and reverse."""
        return b"!" + plain[::-1]

    def decode(self, stored: bytes, /) -> bytes:
        """Undo `encode`."""
        if stored[:1] != b"!":
            raise ValueError("not encoded")
        return stored[:0:-1]


class WrappedStore(MemoryStore):
    """Memory in both wrappers, which must make no difference."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = self.new_storage()

    def new_storage(self) -> Storage:
        """Wrap the memory anew."""
        return Faults(Encoded(self.memory, Reversed()))


class SqliteStore(Store):
    """A SQLite file, on a clock that stands."""

    virtual = True

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self.path = path
        super().__init__(self.new_storage())

    def new_storage(self) -> Storage:
        """Return a storage of the same file."""
        return SqliteStorage(self.path, clock=self.clock, patience=PATIENCE)

    async def expire(self, node: str) -> None:
        """Write the end of the lease into the file."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE nodes SET expires = 0 WHERE id = ?", (node,))

    async def advance(self, seconds: float) -> None:
        """Move the clock."""
        self.clock.seconds += seconds


# -- short ways to write runs


def new_run(run_id: str = "r1", *, reactor: str = "Order", records: int = 1, **options: Any) -> NewRun:
    """Describe a run with `records` records."""
    return NewRun(
        run_id=run_id,
        reactor=reactor,
        status=options.pop("status", "running"),
        format=1,
        fingerprint="f1",
        records=[b"%d" % number for number in range(records)],
        commit=options.pop("commit", f"create-{run_id}"),
        nonce=options.pop("nonce", f"nonce-{run_id}"),
        **options,
    )


async def owned(storage: Storage, run_id: str = "r1", node: str = "a", **options: Any) -> Claim:
    """Create a run of one record, owned by a live node."""
    await storage.join(node, LEASE)
    created = await storage.create(new_run(run_id, **options), node)
    assert created.claim is not None
    return created.claim


async def ended(storage: Storage, run_id: str = "r1", *, retention: float = HOUR, **options: Any) -> Claim:
    """Create a run that has ended and was released; it has two records."""
    claim = await owned(storage, run_id)
    await storage.append(
        Commit(
            claim,
            f"end-{run_id}",
            1,
            [b"end"],
            status="completed",
            terminal=True,
            retention=retention,
            release=True,
            **options,
        )
    )
    return claim


async def head_of(storage: Storage, run_id: str = "r1") -> Head:
    """Read the head of a run that is there."""
    journal = await storage.load(run_id)
    assert journal is not None
    return journal.head


async def needs_of(
    storage: Storage, node: str = "b", *, lease: float = LEASE, limit: int = 100
) -> list[tuple[str, str]]:
    """Read all pages of attention: run ids and reasons."""
    found: list[tuple[str, str]] = []
    cursor = None
    while True:
        page = await storage.attention(node, REACTORS, lease, cursor, limit)
        found += [(need.head.run_id, need.reason) for need in page.needs]
        cursor = page.cursor
        if cursor is None:
            return found


async def listed(storage: Storage, query: Query | None = None, limit: int = 50) -> list[str]:
    """Read all pages of a listing: run ids."""
    found: list[str] = []
    cursor = None
    while True:
        page = await storage.runs(query or Query(), cursor, limit)
        found += [head.run_id for head in page.heads]
        cursor = page.cursor
        if cursor is None:
            return found


RESET = Notice("reset", "")
