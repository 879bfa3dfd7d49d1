"""The SQLite file: what is kept, what is refused, what an operator is told."""

import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from rewound.errors import StorageConfigError, StorageError
from rewound.storage import Commit
from rewound.storage.sqlite import SqliteStorage
from rewound.storage.sqlite.checks import examine
from rewound.storage.sqlite.schema import MIGRATIONS
from rewound.storage.sqlite.tables import SqliteTables
from tests.storage.stores import RESET, head_of, new_run, owned

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a file that is not there yet."""
    return tmp_path / "rewound.db"


async def test_runs_survive_closing(path: Path) -> None:
    """What was answered is in the file; the file keeps its identity."""
    first, second = SqliteStorage(path), SqliteStorage(path)
    await first.open()
    claim = await owned(first)
    await first.append(Commit(claim, "c1", 1, [b"x"]))
    identity = await first.identity()
    await first.close()
    await second.open()
    assert (await head_of(second)).length == 2
    assert await second.identity() == identity
    await second.close()


async def test_storage_can_be_opened_again(path: Path) -> None:
    """`open` after `close` works on the same object."""
    storage = SqliteStorage(path)
    for number in range(2):
        await storage.open()
        assert (await storage.create(new_run(f"r{number}"), None)).created
        await storage.close()


async def test_opening_twice_is_refused(path: Path) -> None:
    """One object serves one runtime; the one that has it keeps it."""
    storage = SqliteStorage(path)
    await storage.open()
    with pytest.raises(StorageError, match="one per runtime"):
        await storage.open()
    assert await storage.load("r1") is None
    await storage.close()


async def test_closed_storage_refuses_work(path: Path) -> None:
    """Before `open` and after `close`, by name."""
    storage = SqliteStorage(path)
    with pytest.raises(StorageError, match="not open"):
        await storage.load("r1")
    await storage.open()
    await storage.close()
    with pytest.raises(StorageError, match="not open"):
        await storage.purge()


async def test_closing_ends_the_streams(path: Path) -> None:
    """A reader of notices sees the end."""
    storage = SqliteStorage(path)
    await storage.open()
    async with storage.notices("a") as stream:
        await storage.close()
        assert [notice async for notice in stream] == [RESET]


def write(statement: str) -> Callable[[Path], object]:
    """Return what runs a statement on the file."""

    def run(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return run


def make_ours(path: Path) -> None:
    """Make a file of a version to come."""
    write("PRAGMA application_id = 0x5265776F")(path)
    write("CREATE TABLE runs (id)")(path)
    write(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")(path)


def make_text(path: Path) -> None:
    """Make a file of another kind."""
    path.write_text("not a database at all" * 100)


def content(path: Path) -> bytes:
    """Read a file, if it is one."""
    return path.read_bytes() if path.is_file() else b""


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (write("CREATE TABLE users (id)"), "another program; give Rewound a file of its own"),
        (make_ours, "newer Rewound .schema 3, this one knows 2.; upgrade Rewound"),
        (make_text, "no SQLite database; use another"),
        (Path.mkdir, "cannot be opened"),
    ],
)
async def test_unfit_file_is_refused(path: Path, prepare: Callable[[Path], object], message: str) -> None:
    """A file that is not ours is left as it is, and the message says what to do."""
    prepare(path)
    before = content(path)
    storage = SqliteStorage(path)
    with pytest.raises(StorageConfigError, match=message):
        await storage.open()
    await storage.close()
    assert content(path) == before


async def test_migration_that_fails_leaves_no_trace(path: Path) -> None:
    """All of it or nothing: here a table of ours stands in its way."""
    write("PRAGMA application_id = 0x5265776F")(path)
    write("CREATE TABLE notices (id)")(path)
    with pytest.raises(StorageConfigError, match="table notices already exists"):
        await SqliteStorage(path).open()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("notices",)]


def test_trio_need_not_be_installed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On asyncio nothing of trio is touched."""
    monkeypatch.delitem(sys.modules, "trio")
    storage = SqliteStorage(path)

    async def use() -> None:
        await storage.open()
        assert (await storage.create(new_run(), None)).created
        await storage.close()

    anyio.run(use)


async def test_missing_folder_is_refused(tmp_path: Path) -> None:
    """Folders are not made up from a typing error."""
    with pytest.raises(StorageConfigError, match="folder must exist"):
        await SqliteStorage(tmp_path / "nope" / "x.db").open()


async def test_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names both versions."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StorageConfigError, match=r"too old: 3\.35\.0"):
        await SqliteStorage(path).open()


async def test_file_that_is_being_made_is_waited_for(path: Path) -> None:
    """A lock held for longer than the patience is the operator's matter."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageConfigError, match="locked"):
            await SqliteStorage(path, patience=0.05).open()
        other.execute("ROLLBACK")
    storage = SqliteStorage(path)
    await storage.open()
    await storage.close()


def test_checks_warn_of_a_file_without_a_log(path: Path) -> None:
    """Some file systems have no write-ahead log."""
    with closing(sqlite3.connect(":memory:")) as connection:
        levels = {check.name: check.level for check in examine(SqliteTables(connection, 0.0), path)}
    assert levels["journal"] == "warn"


async def test_checks_warn_of_a_disk_that_is_nearly_full(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk stops everything, so it is said before."""
    storage = SqliteStorage(path)
    await storage.open()
    fit = await storage.checks()

    def nearly_full(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1)

    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    low = await storage.checks()
    await storage.close()
    assert {check.level for check in fit} == {"ok"}
    assert [check.level for check in low if check.name == "disk"] == ["warn"]
