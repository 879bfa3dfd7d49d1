"""The tables of one transaction."""

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from rewound.storage.entries import Entry, SpaceEntry
from rewound.storage.protocol import Answer, Mail, Notice, Query, Space
from rewound.storage.sqlite.runs import Runs, micros
from rewound.storage.sqlite.spaces import Spaces

__all__ = ["NOTICE_KEPT", "SqliteTables"]

Terms: TypeAlias = dict[str, tuple[Any, ...]]

NOTICE_KEPT = 60.0
"""Seconds for which another process can still read a notice."""

OWNERS = """
WITH RECURSIVE owner (node) AS (
    SELECT min(node) FROM runs WHERE node IS NOT NULL
    UNION ALL
    SELECT (SELECT min(node) FROM runs WHERE runs.node > owner.node) FROM owner WHERE owner.node IS NOT NULL
)
SELECT node FROM owner WHERE node IS NOT NULL
"""
"""Jumps from node to node in the index, instead of reading an entry per run."""


class SqliteTables:
    """`Tables` over one connection, inside one transaction.

    Runs and spaces are written by `flush`; the rest, which is rare, at once.

    Args:
        connection: in a transaction.
        now: the storage's time.
    """

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self.connection = connection
        self.now = now
        self._runs = Runs(connection)
        self._spaces = Spaces(connection)
        self.notices: list[tuple[str, Notice]] = []

    def preload(self, run_ids: Sequence[str], spaces: Sequence[tuple[str, str]] = ()) -> None:
        """Read these runs at once, and these spaces, given by run and name."""
        self._runs.preload(run_ids)
        if spaces:
            self._spaces.preload(spaces)

    def flush(self) -> None:
        """Write every run and space that was changed."""
        self._runs.flush()
        self._spaces.flush()

    # -- runs

    def entry(self, run_id: str) -> Entry | None:
        """Return a run, expired or not; the caller may change it and `write` it back."""
        return self._runs.entry(run_id)

    def add(self, entry: Entry, records: Sequence[bytes]) -> None:
        """Store a new run and its first records."""
        self._runs.add(entry, records)

    def write(self, entry: Entry, records: Sequence[bytes] = ()) -> None:
        """Store a changed run, whose length counts `records` already, and append those."""
        self._runs.write(entry, records)

    def remove(self, entry: Entry) -> None:
        """Forget a run with its records, cells, mail and watches."""
        self._spaces.remove(entry)
        self._runs.remove(entry)
        self.connection.execute("DELETE FROM mail WHERE run_id = ?", (entry.run_id,))
        self.connection.execute("DELETE FROM watches WHERE run_id = ?", (entry.run_id,))

    def records(self, entry: Entry, start: int, limit: int | None) -> list[bytes]:
        """Read a part of a run's journal."""
        rows = self.connection.execute(
            "SELECT data FROM records WHERE run = ? AND seq >= ? ORDER BY seq LIMIT ?",
            (entry.rowid, start, -1 if limit is None else limit),
        )
        return [data for (data,) in rows.fetchall()]

    def expired(self, now: float, limit: int) -> list[Entry]:
        """Return runs to purge."""
        query = "SELECT head FROM runs WHERE expires <= ? ORDER BY expires LIMIT ?"
        return self._runs.find(query, (micros(now), limit))

    def newest(self, query: Query, after: tuple[float, str] | None, limit: int) -> list[Entry]:
        """Return runs, newest first, from behind (`created`, `run_id`) on."""
        terms: Terms = {}
        if query.status is not None:
            terms["status = ?"] = (query.status,)
        if query.reactor is not None:
            terms["reactor = ?"] = (query.reactor,)
        if after is not None:
            terms["(created, run_id) < (?, ?)"] = (micros(after[0]), after[1])
        return self._select(terms, "created DESC, run_id DESC", limit)

    # -- cells

    def space(self, entry: Entry, name: str) -> SpaceEntry | None:
        """Return a space; the caller may change it and `write_space` it back."""
        return self._spaces.find(entry, name)

    def write_space(
        self, entry: Entry, space: SpaceEntry, header: bytes | None, cells: Mapping[int, bytes]
    ) -> None:
        """Store a new or changed space, its header unless that is `None`, and these of its cells."""
        self._spaces.write(entry, space, header, cells)

    def read_space(self, entry: Entry, name: str, numbers: range) -> Space | None:
        """Return a space as callers see it, with those of the numbered cells that are there."""
        return self._spaces.read(entry, name, numbers)

    # -- nodes

    def lease(self, node: str) -> float | None:
        """Return when the node's lease expires or expired; `None` if it has none."""
        row = self.connection.execute("SELECT expires FROM nodes WHERE id = ?", (node,)).fetchone()
        return None if row is None else row[0] / 1e6

    def set_lease(self, node: str, expires: float | None) -> None:
        """Start, extend or (`None`) end a node's lease."""
        if expires is None:
            self.connection.execute("DELETE FROM nodes WHERE id = ?", (node,))
        else:
            self.connection.execute("INSERT OR REPLACE INTO nodes VALUES (?, ?)", (node, micros(expires)))

    def leases(self) -> dict[str, float]:
        """Return every lease, expired or not."""
        return {node: expires / 1e6 for node, expires in self.connection.execute("SELECT * FROM nodes")}

    def owners(self) -> list[str]:
        """Return the nodes that own runs."""
        self.flush()
        return [node for (node,) in self.connection.execute(OWNERS).fetchall()]

    # -- what needs somebody

    def dead(self, now: float, after: tuple[str, str] | None, limit: int) -> list[Entry]:
        """Return runs whose owner has no lease, by (`node`, `run_id`)."""
        leases = self.leases()
        found: list[Entry] = []
        for node in self.owners():
            if leases.get(node, now) > now or (after is not None and node < after[0]):
                continue
            terms: Terms = {"node = ?": (node,)}
            if after is not None and node == after[0]:
                terms["run_id > ?"] = (after[1],)
            found += self._select(terms, "run_id", limit - len(found))
        return found

    def woken(self, node: str, after: str | None, limit: int) -> list[Entry]:
        """Return woken runs that nobody or `node` owns, by `run_id`."""
        found: list[Entry] = []
        for owner in (None, node):
            terms: Terms = {"woken = 1 AND node IS ?": (owner,)}
            if after is not None:
                terms["run_id > ?"] = (after,)
            found += self._select(terms, "run_id", limit)
        return sorted(found, key=lambda entry: entry.run_id)[:limit]

    def alarms(self, node: str, now: float, after: tuple[float, str] | None, limit: int) -> list[Entry]:
        """Return runs that nobody or `node` owns and whose alarm is due, by (`alarm`, `run_id`)."""
        found: list[Entry] = []
        for owner in (None, node):
            terms: Terms = {"node IS ?": (owner,), "alarm <= ?": (micros(now),)}
            if after is not None:
                terms["(alarm, run_id) > (?, ?)"] = (micros(after[0]), after[1])
            found += self._select(terms, "alarm, run_id", limit)
        return sorted(found, key=lambda entry: (entry.alarm, entry.run_id))[:limit]

    def _select(self, terms: Terms, order: str, limit: int) -> list[Entry]:
        """Read runs by fixed terms; only values vary, so SQLite's statements are prepared once each."""
        where = " AND ".join(terms) or "true"
        query = f"SELECT head FROM runs WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
        return self._runs.find(query, (*chain.from_iterable(terms.values()), limit))

    # -- mail

    def has_mail(self, run_id: str, mail_id: str) -> bool:
        """Tell whether this mail is unread."""
        query = "SELECT 1 FROM mail WHERE run_id = ? AND id = ?"
        return self.connection.execute(query, (run_id, mail_id)).fetchone() is not None

    def add_mail(self, run_id: str, mail: Mail) -> None:
        """Store mail."""
        query = "INSERT INTO mail (run_id, id, body, sender) VALUES (?, ?, ?, ?)"
        self.connection.execute(query, (run_id, mail.id, mail.body, mail.sender))

    def take_mail(self, run_id: str, mail_id: str) -> str | None:
        """Remove mail and return its sender; `None` if it is not there."""
        query = "SELECT seq, sender FROM mail WHERE run_id = ? AND id = ?"
        row = self.connection.execute(query, (run_id, mail_id)).fetchone()
        if row is None:
            return None
        self.connection.execute("DELETE FROM mail WHERE seq = ?", (row[0],))
        return str(row[1])

    def mail(self, run_id: str) -> list[Mail]:
        """Return unread mail, oldest first."""
        query = "SELECT id, body, sender FROM mail WHERE run_id = ? ORDER BY seq"
        return [Mail(*row) for row in self.connection.execute(query, (run_id,)).fetchall()]

    def reply(self, mail_id: str, now: float) -> bytes | None:
        """Return a reply that has not expired."""
        query = "SELECT reply FROM replies WHERE mail_id = ? AND expires > ?"
        row = self.connection.execute(query, (mail_id, micros(now))).fetchone()
        return None if row is None else bytes(row[0])

    def add_reply(self, answer: Answer, expires: float) -> None:
        """Store a reply."""
        query = "INSERT OR REPLACE INTO replies VALUES (?, ?, ?)"
        self.connection.execute(query, (answer.mail_id, answer.reply, micros(expires)))

    # -- watchers

    def watchers(self, run_id: str) -> list[str]:
        """Return the nodes that watch a run."""
        query = "SELECT node FROM watches WHERE run_id = ?"
        return [node for (node,) in self.connection.execute(query, (run_id,)).fetchall()]

    def watch(self, run_id: str, node: str) -> None:
        """Add a watcher. Idempotent."""
        self.connection.execute("INSERT OR IGNORE INTO watches VALUES (?, ?)", (run_id, node))

    def unwatch(self, run_id: str, node: str) -> None:
        """Remove a watcher. Idempotent."""
        self.connection.execute("DELETE FROM watches WHERE run_id = ? AND node = ?", (run_id, node))

    def notify(self, node: str, notice: Notice) -> None:
        """Send a hint to a node."""
        self.notices.append((node, notice))

    def tidy(self) -> None:
        """Drop what nobody will read any more: old replies and notices."""
        for table in ("replies", "notices"):
            query = f"DELETE FROM {table} WHERE expires <= ?"  # noqa: S608
            self.connection.execute(query, (micros(self.now),))

    def publish(self, local: set[str]) -> list[tuple[str, Notice]]:
        """Store the notices for nodes elsewhere; return those for `local` nodes."""
        away = [(node, notice) for node, notice in self.notices if node not in local]
        query = "INSERT INTO notices (node, kind, id, expires) VALUES (?, ?, ?, ?)"
        expires = micros(self.now + NOTICE_KEPT)
        rows = [(node, notice.kind, notice.id, expires) for node, notice in dict.fromkeys(away)]
        self.connection.executemany(query, rows)
        return [(node, notice) for node, notice in self.notices if node in local]
