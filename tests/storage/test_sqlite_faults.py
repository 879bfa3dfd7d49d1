"""SQLite under failure: locks, full disks, bad values, killed processes; nothing is ever half-done."""

import logging
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from rewound.errors import StorageError
from rewound.storage import Appended, Commit
from rewound.storage.sqlite import SqliteStorage
from rewound.storage.sqlite.tables import SqliteTables
from rewound.storage.sqlite.transactions import LONGEST
from tests.storage.stores import LEASE, head_of, new_run, owned

pytestmark = pytest.mark.anyio

PATIENCE = 0.1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name the file."""
    return tmp_path / "rewound.db"


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncGenerator[SqliteStorage, None]:
    """Open and close a storage."""
    storage = SqliteStorage(path, **options)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


async def pragma(storage: SqliteStorage, setting: str) -> None:
    """Change a setting of the writer's connection."""

    def act(tables: SqliteTables) -> None:
        tables.connection.execute(f"PRAGMA {setting}").fetchall()

    await storage._writer.call(act)  # pyright: ignore[reportPrivateUsage]


@asynccontextmanager
async def busy(storage: SqliteStorage) -> AsyncGenerator[None, None]:
    """Keep the writer's thread busy, so that what is called meanwhile queues up."""
    entered, gate = threading.Event(), threading.Event()

    def act(tables: SqliteTables) -> None:
        entered.set()
        gate.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(storage._writer.call, act)  # pyright: ignore[reportPrivateUsage]
        await anyio.to_thread.run_sync(entered.wait)
        try:
            yield
            await anyio.wait_all_tasks_blocked()
        finally:
            gate.set()


async def traced(storage: SqliteStorage) -> list[str]:
    """Return a list of the writer's statements from now on."""
    statements: list[str] = []

    def act(tables: SqliteTables) -> None:
        tables.connection.set_trace_callback(statements.append)

    await storage._writer.call(act)  # pyright: ignore[reportPrivateUsage]
    return statements


def locked(path: Path) -> sqlite3.Connection:
    """Return a connection that holds the file's write lock."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


async def test_lock_is_waited_out(path: Path) -> None:
    """Another process that writes for a while delays a call; reads go on meanwhile."""
    async with opened(path) as storage, anyio.create_task_group() as group:
        claim = await owned(storage)
        with closing(locked(path)) as other:
            group.start_soon(storage.append, Commit(claim, "c1", 1, [b"x"]))
            assert (await head_of(storage)).length == 1
            other.execute("ROLLBACK")
    async with opened(path) as storage:
        assert (await head_of(storage)).length == 2


async def test_lock_beyond_patience_is_reported(path: Path) -> None:
    """All calls that waited are told, nothing was written, and the storage works again afterwards."""
    async with opened(path, patience=PATIENCE) as storage:
        claim = await owned(storage)
        with closing(locked(path)):
            for commit in ("c1", "c2"):
                with pytest.raises(StorageError, match=r"another process keeps it locked.* Nothing"):
                    await storage.append(Commit(claim, commit, 1, [b"x"]))
        assert (await head_of(storage)).length == 1
        assert await storage.append(Commit(claim, "c1", 1, [b"x"])) == Appended(2)


async def test_full_disk_is_reported(path: Path) -> None:
    """Every call of the transaction fails, with the remedy; with room again the same calls succeed."""
    async with opened(path, patience=PATIENCE) as storage:
        claims = [await owned(storage, f"r{number}") for number in range(3)]
        await pragma(storage, "max_page_count = 1")
        refused: list[str] = []

        async def append(number: int) -> None:
            with pytest.raises(StorageError, match="the disk is full; free some space"):
                await storage.append(Commit(claims[number], "c1", 1, [b"x" * 20_000]))
            refused.append((await head_of(storage, f"r{number}")).commit)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(append, number)
        assert sorted(refused) == ["create-r0", "create-r1", "create-r2"]
        await pragma(storage, "max_page_count = 1000000")
        for claim in claims:
            assert await storage.append(Commit(claim, "c1", 1, [b"x" * 20_000])) == Appended(2)


async def test_read_only_file_is_reported_at_once(path: Path) -> None:
    """Waiting does not help, so nobody waits."""
    async with opened(path) as storage:
        claim = await owned(storage)
        await pragma(storage, "query_only = 1")
        with pytest.raises(StorageError, match="read-only; let this user write"):
            await storage.append(Commit(claim, "c1", 1, [b"x"]))
        assert (await head_of(storage)).length == 1


async def test_damaged_tables_are_reported(path: Path) -> None:
    """An error without a known remedy still names the file and what SQLite says."""
    async with opened(path) as storage:
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("ALTER TABLE replies RENAME TO gone")
        with pytest.raises(StorageError, match=r"rewound\.db: no such table: replies"):
            await storage.reply("m1")


async def test_value_that_cannot_be_stored_fails_alone(path: Path) -> None:
    """A lone surrogate is no text; the calls that travel with it are stored."""
    failed: list[str] = []

    async def create_impossible(storage: SqliteStorage) -> None:
        with pytest.raises(UnicodeEncodeError):
            await storage.create(new_run("\ud800"), None)
        failed.append("impossible")

    async with opened(path) as storage:
        async with anyio.create_task_group() as group, busy(storage):
            group.start_soon(storage.create, new_run("r1"), None)
            group.start_soon(create_impossible, storage)
            group.start_soon(storage.create, new_run("r2"), None)
        assert failed == ["impossible"]
        assert (await head_of(storage, "r1")).length == (await head_of(storage, "r2")).length == 1


async def test_heartbeat_overtakes_queued_appends(path: Path) -> None:
    """A renewal goes with the next transaction, however many appends wait before it."""
    done: list[str] = []
    async with opened(path) as storage:
        claims = [await owned(storage, f"r{number}", "a") for number in range(300)]

        async def append(number: int) -> None:
            await storage.append(Commit(claims[number], "c1", 1, [b"x"]))
            done.append("append")

        async def renew() -> None:
            assert await storage.renew("a", LEASE)
            done.append("renew")

        async with anyio.create_task_group() as group, busy(storage):
            for number in range(300):
                group.start_soon(append, number)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(renew)
    assert done.index("renew") < 256
    assert len(done) == 301


async def test_simultaneous_appends_share_a_transaction(path: Path) -> None:
    """Group commit: a hundred appends that queued up cost one commit."""
    async with opened(path) as storage:
        claims = [await owned(storage, f"r{number}") for number in range(100)]
        statements = await traced(storage)
        async with anyio.create_task_group() as group, busy(storage):
            for claim in claims:
                group.start_soon(storage.append, Commit(claim, "c1", 1, [b"x"]))
        assert statements.count("COMMIT") <= 4


async def test_large_appends_do_not_share_a_transaction(path: Path) -> None:
    """A transaction is bounded in bytes, so that others get the lock in between."""
    async with opened(path) as storage:
        claims = [await owned(storage, f"r{number}") for number in range(6)]
        statements = await traced(storage)
        async with anyio.create_task_group() as group, busy(storage):
            for claim in claims:
                group.start_soon(storage.append, Commit(claim, "c1", 1, [b"x" * 700_000]))
        assert statements.count("COMMIT") >= 4


async def test_long_transaction_is_cut(path: Path) -> None:
    """Nor does it last: after 50 ms the rest waits for the next one."""
    async with opened(path) as storage:
        statements = await traced(storage)

        def slow(tables: SqliteTables) -> None:
            until = time.monotonic() + LONGEST
            while time.monotonic() <= until:
                pass

        async with anyio.create_task_group() as group, busy(storage):
            for _ in range(3):
                group.start_soon(storage._writer.call, slow)  # pyright: ignore[reportPrivateUsage]
        assert statements.count("COMMIT") >= 5


async def test_abandoned_call_is_not_begun(path: Path) -> None:
    """A caller that was cancelled while his call was still queued leaves no trace."""
    async with opened(path) as storage:
        async with busy(storage), anyio.create_task_group() as group:
            group.start_soon(storage.create, new_run("r1"), None)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        assert (await storage.create(new_run("r2"), None)).created
        assert await storage.load("r1") is None


async def test_call_that_is_cancelled_in_flight_may_happen(path: Path) -> None:
    """What has begun is finished; its answer goes nowhere, and the repeat finds it."""
    async with opened(path) as storage:
        claim = await owned(storage)
        with closing(locked(path)) as other:
            async with anyio.create_task_group() as group:
                group.start_soon(storage.append, Commit(claim, "c1", 1, [b"x"]))
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
            other.execute("ROLLBACK")
        assert await storage.append(Commit(claim, "c1", 1, [b"x"])) == Appended(2)


async def test_closing_does_not_wait_out_a_lock_for_nobody(path: Path) -> None:
    """When all callers gave up, their calls are not tried for the whole patience."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other, anyio.fail_after(20):
        async with opened(path, patience=1000.0) as storage:
            other.execute("BEGIN IMMEDIATE")
            async with anyio.create_task_group() as group:
                group.start_soon(storage.create, new_run("r1"), None)
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()


def test_answers_without_an_event_loop_are_dropped(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A program that ends its loop without closing is told; its storage can still be closed."""
    storage = SqliteStorage(path)
    entered, gate = threading.Event(), threading.Event()

    def act(tables: SqliteTables) -> None:
        entered.set()
        gate.wait()

    async def leave_in_flight() -> None:
        await storage.open()
        async with anyio.create_task_group() as group:
            group.start_soon(storage._writer.call, act)  # pyright: ignore[reportPrivateUsage]
            await anyio.to_thread.run_sync(entered.wait)
            group.cancel_scope.cancel()

    anyio.run(leave_in_flight)
    with caplog.at_level(logging.WARNING, "rewound.storage"):
        gate.set()
        anyio.run(storage.close)
    assert "event loop ended while the storage was open" in caplog.text


CHILD = """
import sys, anyio
from rewound.storage import Commit
from rewound.storage.sqlite import SqliteStorage
sys.path.insert(0, sys.argv[2])
from tests.storage.stores import owned

async def main():
    storage = SqliteStorage(sys.argv[1])
    await storage.open()
    claim = await owned(storage)
    for number in range(1, 1_000_000):
        await storage.append(Commit(claim, f"c{number}", number, [b"x"]))
        print(number + 1, flush=True)

anyio.run(main)
"""


@pytest.mark.faults
async def test_killed_process_loses_nothing_that_was_answered(path: Path) -> None:
    """SIGKILL amid appends: every answered one is there, whole, and the run is taken over."""
    root = str(Path(__file__).parents[2])
    async with await anyio.open_process([sys.executable, "-c", CHILD, str(path), root], stderr=None) as child:
        assert child.stdout is not None
        answered = b""
        async for chunk in child.stdout:
            answered += chunk
            if answered.count(b"\n") > 50 and child.returncode is None:
                child.send_signal(signal.SIGKILL)
    told = int(answered[: answered.rindex(b"\n")].split(b"\n")[-1])
    async with opened(path) as storage:
        journal = await storage.load("r1")
        assert journal is not None
        assert len(journal.records) == journal.head.length >= told
        await storage.leave("a")
        await storage.join("b", LEASE)
        assert await storage.claim(journal.head, "b", "n2")
