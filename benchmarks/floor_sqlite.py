"""Bare commits on SQLite: a record inserted and its run updated in one transaction, without a thread."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from urllib.parse import unquote, urlsplit

from benchmarks.commits import HEAD, RECORDS

__all__ = ["grouped_commits", "single_commits"]

TABLES = (
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, length INTEGER NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE records (run INTEGER, seq INTEGER, data BLOB, PRIMARY KEY (run, seq)) WITHOUT ROWID",
)


def single_commits(url: str, n: int) -> Sequence[float]:
    """Return the seconds that each of `n` transactions of one commit took."""
    took: list[float] = []
    with _database(url, 1) as connection:
        for number in range(n):
            began = perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            _commit(connection, 0, number)
            connection.execute("COMMIT")
            took.append(perf_counter() - began)
    return took


def grouped_commits(url: str, n: int, callers: int) -> float:
    """Return commits a second, a transaction holding one of each caller."""
    rounds = -(-n // callers)
    with _database(url, callers) as connection:
        began = perf_counter()
        for number in range(rounds):
            connection.execute("BEGIN IMMEDIATE")
            for run in range(callers):
                _commit(connection, run, number)
            connection.execute("COMMIT")
        return rounds * callers / (perf_counter() - began)


def _commit(connection: sqlite3.Connection, run: int, number: int) -> None:
    first = number * len(RECORDS)
    for seq, record in enumerate(RECORDS, first):
        connection.execute("INSERT INTO records VALUES (?, ?, ?)", (run, seq, record))
    connection.execute("UPDATE runs SET length = ?, head = ? WHERE id = ?", (first + len(RECORDS), HEAD, run))


@contextmanager
def _database(url: str, runs: int) -> Generator[sqlite3.Connection]:
    """Open a file beside the store's, with its settings."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path)[1:] + ".floor")
    level = "FULL" if "synchronous=FULL" in parts.query else "NORMAL"
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in ("PRAGMA journal_mode = WAL", f"PRAGMA synchronous = {level}", *TABLES):
                connection.execute(statement)
            connection.executemany("INSERT INTO runs VALUES (?, 0, ?)", [(run, HEAD) for run in range(runs)])
            yield connection
    finally:
        for leftover in path.parent.glob(path.name + "*"):
            leftover.unlink()
