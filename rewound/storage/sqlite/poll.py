"""Notices from other processes: one light look every 50 ms for all nodes and waiters of a storage."""

import sqlite3
import time
from collections.abc import Callable
from typing import Any

import msgspec

from rewound.storage.hub import RESET, Hub
from rewound.storage.protocol import Notice
from rewound.storage.sqlite.tables import NOTICE_KEPT, SqliteTables

__all__ = ["Poll"]

EVERY = 0.05
"""Seconds between two looks."""


class Poll:
    """Reads new rows of the notices table, if the file changed at all. Belongs to the reader's thread.

    Args:
        hub: knows which nodes are subscribed here.
        clock: returns monotonic seconds; the machine's by default.
    """

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.monotonic) -> None:
        self._hub, self._clock = hub, clock
        self._last = 0
        self._version = -1
        self._looked = 0.0
        self._missed = False
        self._running = False

    @property
    def timeout(self) -> float | None:
        """For how long the thread may wait for other work: for ever while nobody is subscribed."""
        return max(0.0, self._looked + EVERY - self._clock()) if self._running else None

    def start(self, tables: SqliteTables) -> None:
        """Look from now on; what was sent before the first subscription is skipped."""
        if not self._running:
            [(self._last,)] = tables.connection.execute("SELECT coalesce(max(seq), 0) FROM notices")
            self._looked, self._missed, self._running = self._clock(), False, True

    def look(self, connection: sqlite3.Connection) -> list[tuple[str, Notice]]:
        """Return what came since the last look, and a reset for everybody after a gap."""
        nodes = self._hub.nodes
        self._running = self._running and bool(nodes)
        if not self._running or self._clock() < self._looked + EVERY:
            return []
        self._missed = self._missed or self._clock() > self._looked + NOTICE_KEPT / 2
        self._looked = self._clock()
        try:
            rows = self._new_rows(connection, nodes)
        except sqlite3.Error:
            # Nobody waits for this answer, so the error has nowhere to go; calls will meet it, too.
            self._missed = True
            return []
        resets = [(node, RESET) for node in nodes] if self._missed else []
        self._missed = False
        return resets + [(node, Notice(kind, key)) for _, node, kind, key in rows]

    def _new_rows(self, connection: sqlite3.Connection, nodes: list[str]) -> list[Any]:
        [(version,)] = connection.execute("PRAGMA data_version")
        if version == self._version:
            return []
        query = """
            SELECT seq, node, kind, id FROM notices
            WHERE seq > ? AND node IN (SELECT value FROM json_each(?)) ORDER BY seq
        """
        rows = connection.execute(query, (self._last, msgspec.json.encode(nodes).decode())).fetchall()
        self._version = version
        self._last = rows[-1][0] if rows else self._last
        return rows
