"""Runs and their records in SQLite: read one by one or together, written together.

Statements are few and each carries many rows, as JSON. That is not for SQLite's sake: every step of a
statement gives up Python's global lock, and a busy event loop takes up to 5 ms to give it back. A batch
of 100 appends row by row took 400 ms beside a busy loop, and takes 40 ms this way (and no longer beside
an idle one).
"""

import sqlite3
from collections.abc import Iterable, Sequence
from math import isinf
from typing import Any

import msgspec

from rewound.storage.entries import Entry
from rewound.storage.sqlite.blobs import Blobs

__all__ = ["Runs", "entries_of", "micros"]

Indexed = tuple[str, str | None, bool, float | None, float | None]

LOAD = """
SELECT '[' || coalesce(group_concat(head), '') || ']' FROM runs
WHERE run_id IN (SELECT value FROM json_each(?))
"""
WRITE_HEADS = """
UPDATE runs SET head = json_extract(new.value, '$[1]') FROM json_each(?) AS new
WHERE runs.id = json_extract(new.value, '$[0]')
"""
WRITE_WHOLE = """
INSERT INTO runs (id, run_id, reactor, status, node, woken, created, alarm, expires, head)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1][0]'), json_extract(value, '$[1][1]'),
    json_extract(value, '$[1][2]'), json_extract(value, '$[1][10]'), json_extract(value, '$[1][20]'),
    json_extract(value, '$[2]'), json_extract(value, '$[3]'), json_extract(value, '$[4]'),
    json_extract(value, '$[1]')
FROM json_each(?) WHERE true
ON CONFLICT (id) DO UPDATE SET status = excluded.status, node = excluded.node, woken = excluded.woken,
    alarm = excluded.alarm, expires = excluded.expires, head = excluded.head
"""
WRITE_RECORDS = """
INSERT INTO records (run, seq, data)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),
    substr(?2, json_extract(value, '$[2]'), json_extract(value, '$[3]'))
FROM json_each(?1)
"""

encode = msgspec.json.Encoder().encode
decode_entries = msgspec.json.Decoder(list[Entry]).decode


def micros(seconds: float | None) -> int | None:
    """Return whole microseconds; `None` for a time that never comes."""
    return None if seconds is None or isinf(seconds) else round(seconds * 1e6)


def entries_of(rows: Iterable[Sequence[Any]]) -> list[Entry]:
    """Decode rows whose first column is `head`."""
    return decode_entries("[" + ",".join(row[0] for row in rows) + "]")


class Runs:
    """The runs that one transaction has read or changed so far.

    `write` and `add` take effect in the file with `flush`, which must come before any query that could
    see the difference.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._entries: dict[str, Entry | None] = {}
        self._indexed: dict[str, Indexed] = {}
        self._changed: dict[str, Entry] = {}
        self._records: list[tuple[int, int, int, int]] = []
        self._data = Blobs()
        self._next_id = 0

    def preload(self, run_ids: Sequence[str]) -> None:
        """Read these runs at once, for `entry`."""
        self._entries.update(dict.fromkeys(run_ids))
        [(heads,)] = self._connection.execute(LOAD, (encode(run_ids).decode(),))
        for entry in decode_entries(heads):
            self._know(entry)

    def entry(self, run_id: str) -> Entry | None:
        """Return a run that was preloaded or found."""
        return self._entries[run_id]

    def add(self, entry: Entry, records: Sequence[bytes]) -> None:
        """Store a new run."""
        entry.rowid = self._new_id()
        self.write(entry, records)

    def write(self, entry: Entry, records: Sequence[bytes]) -> None:
        """Store a changed run and its newest records."""
        self._entries[entry.run_id] = self._changed[entry.run_id] = entry
        first = entry.length - len(records)
        for seq, record in enumerate(records, first):
            self._records.append((entry.rowid, seq, *self._data.add(record)))

    def remove(self, entry: Entry) -> None:
        """Forget a run and its records."""
        self.flush()
        self._entries[entry.run_id] = None
        self._indexed.pop(entry.run_id, None)
        self._connection.execute("DELETE FROM records WHERE run = ?", (entry.rowid,))
        self._connection.execute("DELETE FROM runs WHERE id = ?", (entry.rowid,))

    def find(self, query: str, values: Sequence[Any]) -> list[Entry]:
        """Read the runs that a query of `head` finds, in its order."""
        self.flush()
        found = entries_of(self._connection.execute(query, values).fetchall())
        for entry in found:
            self._know(entry)
        return found

    def flush(self) -> None:
        """Write everything that was changed: in one statement for runs whose index entries stay."""
        if not self._changed:
            return
        heads: list[Any] = []
        whole: list[Any] = []
        for run_id, entry in self._changed.items():
            if self._indexed.get(run_id) == _indexed(entry):
                heads.append((entry.rowid, entry))
            else:
                whole.append(_row(entry))
                self._indexed[run_id] = _indexed(entry)
        self._write(WRITE_WHOLE, whole)
        self._write(WRITE_HEADS, heads)
        self._write(WRITE_RECORDS, self._records, self._data.joined())
        self._changed.clear()
        self._records.clear()
        self._data = Blobs()

    def _write(self, statement: str, rows: list[Any], *values: Any) -> None:
        if rows:
            self._connection.execute(statement, (encode(rows).decode(), *values))

    def _know(self, entry: Entry) -> None:
        self._entries[entry.run_id] = entry
        self._indexed[entry.run_id] = _indexed(entry)

    def _new_id(self) -> int:
        if not self._next_id:
            [(last,)] = self._connection.execute("SELECT coalesce(max(id), 0) FROM runs")
            self._next_id = last
        self._next_id += 1
        return self._next_id


def _indexed(entry: Entry) -> Indexed:
    """Return what the columns beside `head` hold and an append may change."""
    return entry.status, entry.node, entry.woken, entry.alarm, entry.expires


def _row(entry: Entry) -> tuple[Any, ...]:
    return entry.rowid, entry, micros(entry.created), micros(entry.alarm), micros(entry.expires)
