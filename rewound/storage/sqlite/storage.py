"""A storage in one SQLite file, for the processes of one machine."""

import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from anyio.abc import ObjectReceiveStream
from anyio.lowlevel import checkpoint
from msgspec import UNSET, UnsetType

from rewound.errors import StorageError
from rewound.storage import rules, spaces, sweeping
from rewound.storage.hub import Hub
from rewound.storage.protocol import (
    Appended,
    Attention,
    Cells,
    Check,
    Claim,
    Commit,
    Created,
    Head,
    Journal,
    Mail,
    NewRun,
    Node,
    Notice,
    Page,
    Query,
    Space,
)
from rewound.storage.sqlite.checks import examine
from rewound.storage.sqlite.failures import patiently
from rewound.storage.sqlite.poll import Poll
from rewound.storage.sqlite.schema import connect, prepare
from rewound.storage.sqlite.tables import SqliteTables
from rewound.storage.sqlite.transactions import Transactions
from rewound.storage.sqlite.worker import Worker

__all__ = ["SqliteStorage", "Synchronous"]

Synchronous = Literal["OFF", "NORMAL", "FULL", "EXTRA"]


class SqliteStorage:
    """Runs in one SQLite file that the processes of one machine share.

    Appends that are made at the same time leave in one transaction, so many runs together are much
    faster than one alone. A killed process loses nothing that was answered; with `NORMAL` a power cut
    may lose the last commits (never the file), with `FULL` it does not.

    Args:
        path: the file; it is created if there is none.
        synchronous: SQLite's setting of that name.
        patience: for how many seconds a locked file or a full disk is waited out.
        clock: returns unix seconds; the machine's by default. Every process must use the same.

    Example:
        >>> storage = SqliteStorage("orders.db", synchronous="FULL")
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "NORMAL",
        patience: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = Path(path)
        self._synchronous, self._patience, self._clock = synchronous, patience, clock
        self._identity = ""
        self._set_up()

    def _set_up(self) -> None:
        self._hub = Hub()
        self._poll = Poll(self._hub)
        self._writer = Worker("rewound-sqlite-writer", self._hub)
        self._reader = Worker("rewound-sqlite-reader", self._hub, self._poll)
        self._open = False

    # -- the backend itself

    async def open(self) -> None:
        """Open the file, and create or migrate its tables.

        Raises:
            StorageConfigError: the file cannot be used; the message says why.
            StorageError: this object is open already.
        """
        if self._open:
            raise StorageError(f"SQLite file {self._path}: this storage object is open; make one per runtime")
        self._open = True
        try:
            await self._writer.start(self._connect_writer)
            await self._reader.start(self._connect_reader)
        except BaseException:
            await self.close()
            raise

    def _connect_writer(self) -> Transactions:
        connection, self._identity = patiently(self._prepare, self._path, self._patience)
        return self._transactions(connection, "BEGIN IMMEDIATE")

    def _connect_reader(self) -> Transactions:
        make = partial(connect, self._path, self._synchronous)
        return self._transactions(patiently(make, self._path, self._patience), "BEGIN")

    def _prepare(self) -> tuple[sqlite3.Connection, str]:
        connection = connect(self._path, self._synchronous)
        try:
            return connection, prepare(connection)
        except BaseException:
            connection.close()
            raise

    def _transactions(self, connection: sqlite3.Connection, begin: str) -> Transactions:
        return Transactions(
            connection,
            self._path,
            begin=begin,
            clock=self._clock,
            patience=self._patience,
            local=lambda: set(self._hub.nodes),
        )

    async def close(self) -> None:
        """Finish what is queued, end the streams of notices and close the file. Idempotent."""
        if not self._open:
            await checkpoint()
            return
        writer, reader, hub = self._writer, self._reader, self._hub
        self._set_up()
        await writer.stop()
        await reader.stop()
        hub.end()

    async def now(self) -> float:
        """Return the machine's clock: unix seconds."""
        await checkpoint()
        return self._clock()

    async def identity(self) -> str:
        """Return the file's id; it never changes, because a file does not fail over."""
        await checkpoint()
        return self._identity

    async def checks(self) -> list[Check]:
        """Examine the settings and the disk."""
        return await self._reader.call(lambda tables: examine(tables, self._path))

    # -- nodes and their leases: ahead of everything else that waits for the writer

    async def join(self, node: str, lease: float) -> None:
        """Start a node's lease."""
        await self._writer.call(lambda tables: rules.join(tables, node, lease, tables.now), urgent=True)

    async def renew(self, node: str, lease: float) -> bool:
        """Extend a lease that has not expired."""
        return await self._writer.call(
            lambda tables: rules.renew(tables, node, lease, tables.now), urgent=True
        )

    async def leave(self, node: str) -> None:
        """End a node's lease."""
        await self._writer.call(lambda tables: tables.set_lease(node, None), urgent=True)

    async def nodes(self) -> list[Node]:
        """List live nodes, and dead ones that still own runs."""
        return await self._reader.call(lambda tables: rules.nodes(tables, tables.now))

    # -- runs

    async def create(self, new: NewRun, node: str | None) -> Created:
        """Create a run if no run has its id."""
        return await self._writer.call(
            lambda tables: rules.create(tables, new, node, tables.now),
            new.run_id,
            size=sum(map(len, new.records)),
        )

    async def load(self, run_id: str, start: int = 0, limit: int | None = None) -> Journal | None:
        """Read a run's head and records."""

        def act(tables: SqliteTables) -> Journal | None:
            entry = rules.find(tables, run_id, tables.now)
            return None if entry is None else Journal(entry.head(), tables.records(entry, start, limit))

        return await self._reader.call(act, run_id)

    async def runs(self, query: Query, cursor: str | None = None, limit: int = 50) -> Page:
        """List heads, newest first."""
        return await self._reader.call(
            lambda tables: sweeping.listing(tables, query, cursor, limit, tables.now)
        )

    async def claim(self, head: Head, node: str, nonce: str) -> Claim | None:
        """Take a run over."""
        return await self._writer.call(
            lambda tables: rules.claim(tables, head, node, nonce, tables.now), head.run_id
        )

    async def append(self, commit: Commit) -> Appended:
        """Write one commit."""
        return await self._writer.call(
            lambda tables: rules.append(tables, commit, tables.now),
            commit.claim.run_id,
            size=sum(map(len, commit.records)),
        )

    async def release(
        self, claim: Claim, *, retention: float, wake: bool = False, due: float | UnsetType | None = UNSET
    ) -> bool:
        """Give up a claim."""
        terms = rules.Terms(retention, wake, due)
        return await self._writer.call(
            lambda tables: rules.release(tables, claim, terms, tables.now), claim.run_id
        )

    async def acknowledge(self, run_id: str, retention: float) -> bool:
        """Let a retained run expire."""
        return await self._writer.call(
            lambda tables: rules.acknowledge(tables, run_id, retention, tables.now), run_id
        )

    async def purge(self, limit: int = 100) -> int:
        """Remove expired runs, replies and notices."""

        def act(tables: SqliteTables) -> int:
            tables.tidy()
            return sweeping.purge(tables, limit, tables.now)

        return await self._writer.call(act)

    # -- cells

    async def put(self, cells: Cells) -> int:
        """Write cells and header of a space together."""
        key, size = (cells.claim.run_id, cells.space), sum(map(len, cells.cells.values()))
        return await self._writer.call(
            lambda it: spaces.put(it, cells, it.now), key[0], spaces=(key,), size=size
        )

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """Read a space's header and a page of its cells."""
        page = spaces.page(start, count)
        return await self._reader.call(lambda it: spaces.read(it, run_id, space, page, it.now), run_id)

    # -- mail

    async def post(self, run_id: str, mail: Mail) -> Head | None:
        """Store mail for a run's owner."""
        return await self._writer.call(
            lambda tables: rules.post(tables, run_id, mail, tables.now), run_id, size=len(mail.body)
        )

    async def mail(self, run_id: str) -> list[Mail]:
        """Read a run's unread mail."""
        return await self._reader.call(lambda tables: tables.mail(run_id))

    async def reply(self, mail_id: str) -> bytes | None:
        """Read a reply."""
        return await self._reader.call(lambda tables: tables.reply(mail_id, tables.now))

    # -- what needs an owner

    async def attention(
        self, node: str, reactors: frozenset[str], lease: float, cursor: str | None = None, limit: int = 100
    ) -> Attention:
        """Find runs that need an owner or a nudge."""
        sweep = sweeping.Sweep(node, reactors, lease, limit)
        return await self._writer.call(lambda tables: sweeping.attention(tables, sweep, cursor, tables.now))

    async def scan(self, cursor: str | None = None, limit: int = 100) -> str | None:  # noqa: ARG002
        """Return `None`: an index and its run change together here, so nothing can be lost."""
        await checkpoint()
        return None

    # -- notices

    @asynccontextmanager
    async def notices(self, node: str) -> AsyncGenerator[ObjectReceiveStream[Notice], None]:
        """Subscribe to a node's notices, of this process and of others."""
        async with self._hub.subscribe(node) as stream:
            await self._reader.call(self._poll.start)
            yield stream

    async def watch(self, run_id: str, node: str) -> Head | None:
        """Have the node told of every append to a run."""
        return await self._writer.call(lambda tables: rules.watch(tables, run_id, node, tables.now), run_id)

    async def unwatch(self, run_id: str, node: str) -> None:
        """End `watch`."""
        await self._writer.call(lambda tables: rules.unwatch(tables, run_id, node), run_id)
