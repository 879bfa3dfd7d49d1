"""Every query has its index: none reads a whole table, none sorts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rewound.storage import Answer, Cells, Commit, Mail, Query
from rewound.storage.sqlite import SqliteStorage
from rewound.storage.sqlite.tables import SqliteTables
from tests.storage.stores import HOUR, REACTORS, SqliteStore, ended, head_of, new_run, owned

pytestmark = pytest.mark.anyio

SMALL = ("SCAN nodes", "SCAN json_each", "SCAN new", "SCAN wanted", "SCAN owner")
"""Tables that are small, or are the list of what is asked for."""


async def exercise(store: SqliteStore) -> None:
    """Make every kind of call."""
    storage = store.storage
    claim = await owned(storage)
    await storage.watch("r1", "b")
    await storage.post("r1", Mail("m1", b"x", "b"))
    await storage.mail("r1")
    await storage.append(Commit(claim, "c1", 1, [b"x"], due=1.0, answers=[Answer("m1", b"")]))
    await storage.reply("m1")
    await storage.put(Cells(claim, "map", "w1", 0, {0: b"x"}, b"head"))
    await storage.put(Cells(claim, "map", "w2", 1, {0: b"y"}))
    await storage.space("r1", "map")
    await storage.renew("a", HOUR)
    await ended(storage, "r2", retention=0.0)
    await storage.create(new_run("r3"), None)
    await storage.claim(await head_of(storage, "r3"), "a", "n3")
    for query in (Query(), Query("running"), Query(None, "Order"), Query("running", "Order")):
        await storage.runs(query, (await storage.runs(query, limit=1)).cursor)
    await store.expire("a")
    cursor = (await storage.attention("b", REACTORS, HOUR, limit=1)).cursor
    while cursor is not None:
        cursor = (await storage.attention("b", REACTORS, HOUR, cursor, limit=1)).cursor
    await storage.nodes()
    await storage.unwatch("r1", "b")
    await storage.purge()
    await storage.leave("a")


async def traced(storage: SqliteStorage) -> set[str]:
    """Return the set of statements that both connections execute from now on."""
    statements: set[str] = set()

    def trace(tables: SqliteTables) -> None:
        tables.connection.set_trace_callback(statements.add)

    await storage._writer.call(trace)  # pyright: ignore[reportPrivateUsage]
    await storage._reader.call(trace)  # pyright: ignore[reportPrivateUsage]
    return statements


async def test_every_statement_uses_an_index(tmp_path: Path) -> None:
    """The plans of all statements of all calls."""
    store = SqliteStore(tmp_path / "rewound.db")
    async with store.running():
        assert isinstance(store.storage, SqliteStorage)
        statements = await traced(store.storage)
        await exercise(store)
    slow: list[str] = []
    with closing(sqlite3.connect(store.path)) as connection:
        for statement in statements:
            if statement.lstrip().startswith(("SELECT", "WITH", "UPDATE", "DELETE", "INSERT")):
                plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
                slow += [f"{step}: {statement}" for step in plan if is_slow(step, statement)]
    assert len(statements) > 30
    assert slow == []


def is_slow(step: str, statement: str) -> bool:
    """Tell whether a step reads a whole table, or sorts what it reads (but one run's mail is short)."""
    if "TEMP B-TREE" in step:
        return "FROM mail" not in statement
    return step.startswith("SCAN") and "USING" not in step and not step.startswith(SMALL)
