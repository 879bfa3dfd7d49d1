"""Notices between processes that share a SQLite file: one light look for all."""

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from rewound.storage import Mail, Notice
from rewound.storage.hub import Hub
from rewound.storage.sqlite.poll import EVERY, Poll
from rewound.storage.sqlite.schema import connect, prepare
from rewound.storage.sqlite.tables import NOTICE_KEPT, SqliteTables
from tests.storage.stores import RESET, ManualClock, SqliteStore, owned

pytestmark = pytest.mark.anyio

CHANGED = Notice("changed", "r1")


class Bench:
    """A poll over a file to which another process writes."""

    def __init__(self, path: Path) -> None:
        self.clock, self.hub = ManualClock(), Hub()
        self.reader, self.writer = connect(path, "OFF"), connect(path, "OFF")
        prepare(self.writer)
        self.poll = Poll(self.hub, self.clock)

    def start(self) -> None:
        """Begin to look."""
        self.poll.start(SqliteTables(self.reader, 0.0))

    def send(self, node: str, notice: Notice = CHANGED) -> None:
        """Send a notice from elsewhere."""
        tables = SqliteTables(self.writer, 0.0)
        tables.notify(node, notice)
        tables.publish(set())

    def look(self, seconds: float = EVERY) -> list[tuple[str, Notice]]:
        """Let time pass, and look."""
        self.clock.seconds += seconds
        return self.poll.look(self.reader)


@pytest.fixture
def bench(tmp_path: Path) -> Generator[Bench, None, None]:
    """Make a poll on a new file."""
    bench = Bench(tmp_path / "rewound.db")
    with closing(bench.reader), closing(bench.writer):
        yield bench


async def test_nobody_looks_without_subscribers(bench: Bench) -> None:
    """The thread sleeps until it has other work."""
    assert bench.poll.timeout is None
    assert bench.look() == []
    async with bench.hub.subscribe("a"):
        bench.start()
        assert bench.poll.timeout == pytest.approx(EVERY, abs=1e-4)
    assert bench.look() == []
    assert bench.poll.timeout is None


async def test_new_notices_are_found_once(bench: Bench) -> None:
    """Those of subscribed nodes, sent since the subscription, at the next look."""
    bench.send("a", Notice("mail", "before"))
    async with bench.hub.subscribe("a"), bench.hub.subscribe("b"):
        bench.start()
        bench.send("a")
        bench.send("c")
        assert bench.look(EVERY / 2) == []
        assert bench.look(EVERY / 2) == [("a", CHANGED)]
        assert bench.look() == []


async def test_second_subscription_skips_nothing(bench: Bench) -> None:
    """What the first is about to hear is still heard."""
    async with bench.hub.subscribe("a"):
        bench.start()
        bench.send("a")
        async with bench.hub.subscribe("b"):
            bench.start()
            assert bench.look() == [("a", CHANGED)]


async def test_repeated_hints_are_stored_once(bench: Bench) -> None:
    """One transaction sends one hint of a kind."""
    tables = SqliteTables(bench.writer, 0.0)
    tables.notify("a", CHANGED)
    tables.notify("a", CHANGED)
    assert tables.publish(set()) == []
    assert bench.writer.execute("SELECT count(*) FROM notices").fetchone() == (1,)


async def test_gap_in_looking_is_a_reset(bench: Bench) -> None:
    """A process that slept for longer than notices are kept may have missed some."""
    async with bench.hub.subscribe("a"):
        bench.start()
        assert bench.look(NOTICE_KEPT) == [("a", RESET)]
        assert bench.look() == []


async def test_failed_look_is_made_good_by_a_reset(bench: Bench) -> None:
    """While the file cannot be read nothing is heard; then everybody looks at everything."""
    async with bench.hub.subscribe("a"):
        bench.start()
        bench.writer.execute("ALTER TABLE notices RENAME TO away")
        assert bench.look() == []
        bench.writer.execute("ALTER TABLE away RENAME TO notices")
        assert bench.look() == [("a", RESET)]
        assert bench.look() == []


async def test_old_notices_are_purged(tmp_path: Path) -> None:
    """Notices that nobody picked up do not pile up."""
    store = SqliteStore(tmp_path / "rewound.db")
    async with store.running():
        await owned(store.storage, node="a")
        await store.storage.post("r1", Mail("m1", b"x", "b"))
        with closing(sqlite3.connect(store.path)) as connection:
            rows = connection.execute("SELECT node, kind, id FROM notices").fetchall()
            await store.advance(NOTICE_KEPT)
            await store.storage.purge()
            left = connection.execute("SELECT count(*) FROM notices").fetchone()
    assert rows == [("a", "mail", "r1")]
    assert left == (0,)
