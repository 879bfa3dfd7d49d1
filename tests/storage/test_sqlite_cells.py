"""Cells in the SQLite file: a file of the version before, and what is left of a run that is gone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from rewound.storage import Cells, Commit, Space
from rewound.storage.sqlite import SqliteStorage, schema
from tests.storage.stores import ManualClock, SqliteStore, head_of, new_run, owned

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a file that is not there yet."""
    return tmp_path / "rewound.db"


async def test_file_of_version_1_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs, and the claims on them, stay; they can have cells now."""
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        old = SqliteStorage(path)
        await old.open()
        claim, identity = await owned(old), await old.identity()
        await old.close()
    storage = SqliteStorage(path)
    await storage.open()
    assert (await head_of(storage)).nonce == claim.nonce
    assert await storage.identity() == identity
    assert await storage.put(Cells(claim, "map", "w0", 0, {0: b"a"})) == 1
    await storage.close()


async def test_purged_run_leaves_no_rows(path: Path) -> None:
    """Neither cells nor spaces of it stay in the file; those of others do."""
    async with SqliteStore(path).running() as store:
        other = await owned(store.storage, "r2")
        claim = await owned(store.storage)
        for owner in (claim, other):
            for space in ("map", "map/1"):
                await store.storage.put(Cells(owner, space, "w0", 0, {0: b"a", 1: b"b"}))
        await store.storage.append(Commit(claim, "end", 1, terminal=True, release=True, retention=1.0))
        await store.advance(2)
        assert await store.storage.purge() == 1
        with closing(sqlite3.connect(path)) as file:
            [(spaces,)] = file.execute("SELECT count(*) FROM spaces")
            [(cells,)] = file.execute("SELECT count(*) FROM cells")
        assert (spaces, cells) == (2, 4)
        assert await store.storage.space("r2", "map") == Space(1, b"", {0: b"a", 1: b"b"})


async def test_expired_run_is_replaced_with_its_cells(path: Path) -> None:
    """Purged, made again and written to in one transaction, it has none of the old cells."""
    clock = ManualClock()
    storage = SqliteStorage(path, clock=clock)
    await storage.open()
    claim = await owned(storage)
    await storage.put(Cells(claim, "map", "w0", 0, {0: b"old", 1: b"old"}))
    await storage.append(Commit(claim, "end", 1, terminal=True, release=True, retention=1.0))
    clock.seconds += 2
    again = new_run(commit="again")
    async with anyio.create_task_group() as group:
        group.start_soon(storage.create, again, "a")
        await anyio.lowlevel.checkpoint()
        group.start_soon(storage.put, Cells(claim, "map", "w1", 0, {1: b"new"}))
    assert await storage.space("r1", "map") == Space(1, b"", {1: b"new"})
    await storage.close()
