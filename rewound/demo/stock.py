"""The demo's warehouse: an SQLite file of its own, whose operations may be repeated.

A step that a killed process leaves behind runs again, so whatever it does must be safe to do twice:
everything here is keyed by the order and done at most once.
"""

import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

__all__ = ["OutOfStock", "Parcel", "Stock"]

SCHEMA = """
CREATE TABLE shelf (
    sku TEXT PRIMARY KEY, filled INTEGER NOT NULL, remaining INTEGER NOT NULL CHECK (remaining >= 0)
);
CREATE TABLE parcel (
    "order" TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL, state TEXT NOT NULL
);
"""


class OutOfStock(Exception):  # noqa: N818  named by what happened, as the library's own errors are
    """There are fewer left than were ordered."""


class Parcel(Struct, frozen=True):
    """Goods set aside for one order: `held`, `shipped`, or `released` to the shelf again."""

    order: str
    sku: str
    quantity: int
    state: Literal["held", "shipped", "released"]


class Stock:
    """A warehouse in a file; blocking, so call it from a thread.

    Args:
        path: the SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, levels: Mapping[str, int]) -> None:
        """Make the file and put so many of each article on the shelves."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.executescript(SCHEMA)
            db.executemany("INSERT INTO shelf VALUES (?, ?, ?)", [(sku, n, n) for sku, n in levels.items()])

    def reserve(self, order: str, sku: str, quantity: int) -> None:
        """Set goods aside for an order, once.

        Raises:
            OutOfStock: there are not enough of them.
        """
        with self._write() as db:
            if _state_of(db, order) in {"held", "shipped"}:
                return
            taken = db.execute(
                "UPDATE shelf SET remaining = remaining - ? WHERE sku = ? AND remaining >= ?",
                (quantity, sku, quantity),
            )
            if not taken.rowcount:
                raise OutOfStock(f"{quantity} of {sku} ordered, {_left_of(db, sku)} left")
            db.execute("INSERT OR REPLACE INTO parcel VALUES (?, ?, ?, 'held')", (order, sku, quantity))

    def release(self, order: str) -> None:
        """Put an order's goods back on the shelf, once."""
        with self._write() as db:
            if _move(db, order, "held", "released"):
                db.execute(
                    "UPDATE shelf SET remaining = remaining + parcel.quantity FROM parcel"
                    ' WHERE parcel."order" = ? AND shelf.sku = parcel.sku',
                    (order,),
                )

    def ship(self, order: str) -> None:
        """Hand an order's parcel to the carrier, once."""
        with self._write() as db:
            _move(db, order, "held", "shipped")

    def recall(self, order: str) -> None:
        """Take a shipped parcel back, once."""
        with self._write() as db:
            _move(db, order, "shipped", "held")

    def parcels(self) -> dict[str, Parcel]:
        """Return every parcel by order."""
        with closing(sqlite3.connect(self.path)) as db:
            return {row[0]: Parcel(*row) for row in db.execute("SELECT * FROM parcel")}

    def missing(self) -> dict[str, int]:
        """Return how many of each article are gone from its shelf."""
        with closing(sqlite3.connect(self.path)) as db:
            return dict(db.execute("SELECT sku, filled - remaining FROM shelf"))

    @contextmanager
    def _write(self) -> Generator[sqlite3.Connection]:
        """Open one write transaction, closed to others until it ends."""
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")


def _state_of(db: sqlite3.Connection, order: str) -> Any:
    row = db.execute('SELECT state FROM parcel WHERE "order" = ?', (order,)).fetchone()
    return row and row[0]


def _left_of(db: sqlite3.Connection, sku: str) -> int:
    row = db.execute("SELECT remaining FROM shelf WHERE sku = ?", (sku,)).fetchone()
    return row[0] if row else 0


def _move(db: sqlite3.Connection, order: str, source: str, target: str) -> bool:
    """Change a parcel's state, if it is in the state expected; tell whether it was."""
    changed = db.execute(
        'UPDATE parcel SET state = ? WHERE "order" = ? AND state = ?', (target, order, source)
    )
    return changed.rowcount > 0
