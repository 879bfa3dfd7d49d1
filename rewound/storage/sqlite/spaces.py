"""Spaces and their cells in SQLite: read together and written together, as runs are (see `runs`)."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rewound.storage.entries import Entry, SpaceEntry
from rewound.storage.protocol import Space
from rewound.storage.sqlite.blobs import Blobs

__all__ = ["Spaces"]

LOAD = """
SELECT json_group_array(json_array(spaces.run, json_array(spaces.name, version, write_id, spaces.id)))
FROM json_each(?) AS wanted
JOIN runs ON runs.run_id = json_extract(wanted.value, '$[0]')
JOIN spaces ON spaces.run = runs.id AND spaces.name = json_extract(wanted.value, '$[1]')
"""
READ_CELLS = """
SELECT json_group_array(json_array(number, hex(value))) FROM cells
WHERE space = ? AND number >= ? AND number < ?
"""
WRITE_SPACES = """
INSERT INTO spaces (id, run, name, version, write_id, header)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]'), json_extract(value, '$[4]'),
    substr(?2, json_extract(value, '$[5]'), json_extract(value, '$[6]'))
FROM json_each(?1) WHERE true
ON CONFLICT (id) DO UPDATE SET version = excluded.version, write_id = excluded.write_id,
    header = coalesce(excluded.header, header)
"""
WRITE_CELLS = """
INSERT OR REPLACE INTO cells (space, number, value)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),
    substr(?2, json_extract(value, '$[2]'), json_extract(value, '$[3]'))
FROM json_each(?1)
"""

encode = msgspec.json.Encoder().encode
decode_entries = msgspec.json.Decoder(list[tuple[int, SpaceEntry]]).decode
decode_cells = msgspec.json.Decoder(list[tuple[int, str]]).decode


class Spaces:
    """The spaces that one transaction has read or changed so far; `flush` writes them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[int, str], SpaceEntry] = {}
        self._changed: dict[tuple[int, str], SpaceEntry] = {}
        self._headers: dict[tuple[int, str], bytes] = {}
        self._cells: dict[tuple[int, int], bytes] = {}
        self._next_id = 0

    def preload(self, names: Iterable[tuple[str, str]]) -> None:
        """Read these spaces, given by run and name, at once, for `find`."""
        wanted = encode(list(names)).decode()
        [(found,)] = self._connection.execute(LOAD, (wanted,))
        self._known.update(((run, space.name), space) for run, space in decode_entries(found))

    def find(self, entry: Entry, name: str) -> SpaceEntry | None:
        """Return a space that was preloaded or written."""
        return self._known.get((entry.rowid, name))

    def write(
        self, entry: Entry, space: SpaceEntry, header: bytes | None, cells: Mapping[int, bytes]
    ) -> None:
        """Store a space, its header unless that is `None`, and these of its cells."""
        key = entry.rowid, space.name
        space.rowid = space.rowid or self._new_id()
        self._known[key] = self._changed[key] = space
        if header is not None:
            self._headers[key] = header
        self._cells.update(((space.rowid, number), cell) for number, cell in cells.items())

    def flush(self) -> None:
        """Write everything that was changed."""
        if not self._changed:
            return
        headers, values = Blobs(), Blobs()
        rows = [self._row(run, space, headers) for (run, _), space in self._changed.items()]
        self._connection.execute(WRITE_SPACES, (encode(rows).decode(), headers.joined()))
        cells = [(*key, *values.add(cell)) for key, cell in self._cells.items()]
        self._connection.execute(WRITE_CELLS, (encode(cells).decode(), values.joined()))
        self._changed.clear()
        self._headers.clear()
        self._cells.clear()

    def _row(self, run: int, space: SpaceEntry, headers: Blobs) -> tuple[Any, ...]:
        header = self._headers.get((run, space.name))
        place = (None, None) if header is None else headers.add(header)
        return space.rowid, run, space.name, space.version, space.id, *place

    def read(self, entry: Entry, name: str, numbers: range) -> Space | None:
        """Read a space from the file: its header and a page of its cells, as one row each."""
        query = "SELECT id, version, header FROM spaces WHERE run = ? AND name = ?"
        row = self._connection.execute(query, (entry.rowid, name)).fetchone()
        if row is None:
            return None
        rowid, version, header = row
        [(found,)] = self._connection.execute(READ_CELLS, (rowid, numbers.start, numbers.stop))
        cells = {number: bytes.fromhex(cell) for number, cell in sorted(decode_cells(found))}
        return Space(version, header or b"", cells)

    def remove(self, entry: Entry) -> None:
        """Forget a run's spaces and their cells."""
        self.flush()
        self._known = {key: space for key, space in self._known.items() if key[0] != entry.rowid}
        mine = "SELECT id FROM spaces WHERE run = ?"
        self._connection.execute(f"DELETE FROM cells WHERE space IN ({mine})", (entry.rowid,))  # noqa: S608
        self._connection.execute("DELETE FROM spaces WHERE run = ?", (entry.rowid,))

    def _new_id(self) -> int:
        if not self._next_id:
            [(last,)] = self._connection.execute("SELECT coalesce(max(id), 0) FROM spaces")
            self._next_id = last
        self._next_id += 1
        return self._next_id
