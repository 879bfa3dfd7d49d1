"""A run as the backends of one process keep it, and the tables that the rules need.

The rules (`rules`, `sweeping`) are written once, as plain functions over `Tables`. Memory implements
the tables with dicts, SQLite with a transaction; Redis has its own, in Lua, because its rules must run
where its data is.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from rewound.storage.protocol import Answer, Head, Mail, Notice, Query, Space

__all__ = ["Entry", "SpaceEntry", "Tables"]


class Entry(Struct, array_like=True):
    """A run's head, mutable, with what only the backend needs: the fields after `mail`.

    Args:
        origin: the commit that created it; a repeated `create` is recognised by it.
        alarm: when the alarm comes up next: `due`, or one lease after it was last handed out.
        woken: somebody must look at it: it has mail, or was released with work left.
        watched: at least one node watches it.
        rowid: the number under which SQLite keeps it.
    """

    run_id: str
    reactor: str
    status: str
    terminal: bool
    created: float
    updated: float
    length: int
    commit: str
    epoch: int
    nonce: str
    node: str | None
    format: int
    fingerprint: str
    key: str | None = None
    due: float | None = None
    expires: float | None = None
    retained: bool = False
    mail: int = 0
    origin: str = ""
    alarm: float | None = None
    woken: bool = False
    watched: bool = False
    rowid: int = 0

    def head(self) -> Head:
        """Return the head as callers see it."""
        return Head(
            self.run_id,
            self.reactor,
            self.status,
            self.terminal,
            self.created,
            self.updated,
            self.length,
            self.commit,
            self.epoch,
            self.nonce,
            self.node,
            self.format,
            self.fingerprint,
            self.key,
            self.due,
            self.expires,
            self.retained,
            self.mail,
        )


class SpaceEntry(Struct, array_like=True):
    """A space without its header and cells, mutable.

    Args:
        name: unique within its run.
        version: how many writes it has had.
        id: of the newest write.
        rowid: the number under which SQLite keeps it.
    """

    name: str
    version: int = 0
    id: str = ""
    rowid: int = 0


class Tables(Protocol):
    """What the rules read and write. Every method acts at once; nothing is awaited in between.

    A rule refuses before its first write, so a refused call leaves nothing half-done.
    """

    def entry(self, run_id: str) -> Entry | None:
        """Return a run, expired or not; the caller may change it and `write` it back."""
        ...

    def add(self, entry: Entry, records: Sequence[bytes]) -> None:
        """Store a new run and its first records."""
        ...

    def write(self, entry: Entry, records: Sequence[bytes] = ()) -> None:
        """Store a changed run, whose length counts `records` already, and append those."""
        ...

    def remove(self, entry: Entry) -> None:
        """Forget a run with its records, cells, mail and watches."""
        ...

    def expired(self, now: float, limit: int) -> list[Entry]:
        """Return runs to purge."""
        ...

    def newest(self, query: Query, after: tuple[float, str] | None, limit: int) -> list[Entry]:
        """Return runs, newest first, from behind (`created`, `run_id`) on."""
        ...

    def lease(self, node: str) -> float | None:
        """Return when the node's lease expires or expired; `None` if it has none."""
        ...

    def set_lease(self, node: str, expires: float | None) -> None:
        """Start, extend or (`None`) end a node's lease."""
        ...

    def leases(self) -> dict[str, float]:
        """Return every lease, expired or not."""
        ...

    def owners(self) -> list[str]:
        """Return the nodes that own runs."""
        ...

    def dead(self, now: float, after: tuple[str, str] | None, limit: int) -> list[Entry]:
        """Return runs whose owner has no lease, by (`node`, `run_id`)."""
        ...

    def woken(self, node: str, after: str | None, limit: int) -> list[Entry]:
        """Return woken runs that nobody or `node` owns, by `run_id`."""
        ...

    def alarms(self, node: str, now: float, after: tuple[float, str] | None, limit: int) -> list[Entry]:
        """Return runs that nobody or `node` owns and whose alarm is due, by (`alarm`, `run_id`)."""
        ...

    def space(self, entry: Entry, name: str) -> SpaceEntry | None:
        """Return a space; the caller may change it and `write_space` it back."""
        ...

    def write_space(
        self, entry: Entry, space: SpaceEntry, header: bytes | None, cells: Mapping[int, bytes]
    ) -> None:
        """Store a new or changed space, its header unless that is `None`, and these of its cells."""
        ...

    def read_space(self, entry: Entry, name: str, numbers: range) -> Space | None:
        """Return a space as callers see it, with those of the numbered cells that are there."""
        ...

    def has_mail(self, run_id: str, mail_id: str) -> bool:
        """Tell whether this mail is unread."""
        ...

    def add_mail(self, run_id: str, mail: Mail) -> None:
        """Store mail."""
        ...

    def take_mail(self, run_id: str, mail_id: str) -> str | None:
        """Remove mail and return its sender; `None` if it is not there."""
        ...

    def mail(self, run_id: str) -> list[Mail]:
        """Return unread mail, oldest first."""
        ...

    def reply(self, mail_id: str, now: float) -> bytes | None:
        """Return a reply that has not expired."""
        ...

    def add_reply(self, answer: Answer, expires: float) -> None:
        """Store a reply."""
        ...

    def watchers(self, run_id: str) -> list[str]:
        """Return the nodes that watch a run."""
        ...

    def watch(self, run_id: str, node: str) -> None:
        """Add a watcher. Idempotent."""
        ...

    def unwatch(self, run_id: str, node: str) -> None:
        """Remove a watcher. Idempotent."""
        ...

    def notify(self, node: str, notice: Notice) -> None:
        """Send a hint to a node."""
        ...
