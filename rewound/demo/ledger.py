"""The payment service's book: every charge and refund, in an SQLite file that outlives the service."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Literal

from msgspec import Struct

__all__ = ["Entry", "Ledger", "Voided"]

SCHEMA = """
CREATE TABLE entry (
    "key" TEXT PRIMARY KEY, "order" TEXT NOT NULL, kind TEXT NOT NULL, cents INTEGER NOT NULL
);
CREATE TABLE voided ("order" TEXT PRIMARY KEY);
"""


class Voided(Exception):  # noqa: N818  named by what happened, as the library's own errors are
    """The order's payment was called off; it takes no further charge."""


class Entry(Struct, frozen=True):
    """Money moved once: `key` is the idempotency key of the request that moved it."""

    key: str
    order: str
    kind: Literal["charge", "refund"]
    cents: int


class Ledger:
    """The book. Safe to use from several threads of one process.

    Args:
        path: the SQLite file; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        fresh = not path.exists()
        self._db = sqlite3.connect(path, check_same_thread=False)
        # A write need not reach the disk before it is answered: the demo kills processes, not machines.
        self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        self._lock = Lock()
        if fresh:
            self._db.executescript(SCHEMA)

    def charge(self, key: str, order: str, cents: int) -> Entry:
        """Book a charge, or return the one that this key booked before.

        Raises:
            Voided: the order's payment was called off.
        """
        with self._lock, self._db:
            if known := self._entry(key):
                return known
            if self._db.execute('SELECT 1 FROM voided WHERE "order" = ?', (order,)).fetchone():
                raise Voided(f"the payment of {order} was called off")
            return self._book(Entry(key, order, "charge", cents))

    def refund(self, key: str, order: str) -> Entry:
        """Give back what an order was charged and not given back yet, or return what this key did before."""
        with self._lock, self._db:
            return self._entry(key) or self._book(Entry(key, order, "refund", self._net(order)))

    def void(self, key: str, order: str) -> Entry:
        """Refund an order, and refuse a charge for it that might still be under way."""
        with self._lock, self._db:
            self._db.execute("INSERT OR IGNORE INTO voided VALUES (?)", (order,))
            return self._entry(key) or self._book(Entry(key, order, "refund", self._net(order)))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _entry(self, key: str) -> Entry | None:
        row = self._db.execute('SELECT * FROM entry WHERE "key" = ?', (key,)).fetchone()
        return Entry(*row) if row else None

    def _book(self, entry: Entry) -> Entry:
        row = (entry.key, entry.order, entry.kind, entry.cents)
        self._db.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", row)
        return entry

    def _net(self, order: str) -> int:
        query = (
            "SELECT total(CASE kind WHEN 'charge' THEN cents ELSE -cents END) FROM entry WHERE \"order\" = ?"
        )
        return int(self._db.execute(query, (order,)).fetchone()[0])


def entries(path: Path) -> list[Entry]:
    """Read the whole book from its file, oldest entry first, as an auditor would."""
    with closing(sqlite3.connect(path)) as db:
        return [Entry(*row) for row in db.execute("SELECT * FROM entry ORDER BY rowid")]
