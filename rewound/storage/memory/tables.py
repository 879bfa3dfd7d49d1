"""The tables of a run, as dicts and sorted lists."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from rewound.storage.entries import Entry, SpaceEntry
from rewound.storage.memory.ordered import Ordered
from rewound.storage.protocol import Answer, Mail, Notice, Query, Space

__all__ = ["MemoryTables"]

Indexed = tuple[str | None, bool, float | None, float | None]
NOT_INDEXED: Indexed = (None, False, None, None)


class _Space:
    """A space as it is kept."""

    __slots__ = ("cells", "entry", "header")

    def __init__(self, entry: SpaceEntry) -> None:
        self.entry = entry
        self.header = b""
        self.cells: dict[int, bytes] = {}


class MemoryTables:
    """`Tables` in dicts.

    Entries are handed out as they are, not copied: rules check before they change one, and nothing
    that they then do can fail.
    """

    def __init__(self, notify: Callable[[str, Notice], None]) -> None:
        self._notify = notify
        self.journals: dict[str, list[bytes]] = {}
        self._entries: dict[str, Entry] = {}
        self._spaces: dict[str, dict[str, _Space]] = {}
        self._mail: dict[str, dict[str, Mail]] = {}
        self._replies: dict[str, tuple[float, bytes]] = {}
        self._watchers: dict[str, dict[str, None]] = {}
        self._leases: dict[str, float] = {}
        self._indexed: dict[str, Indexed] = {}
        self._newest = Ordered[tuple[float, str]]()
        self._owned = Ordered[tuple[str, str]]()
        self._woken = Ordered[tuple[str]]()
        self._alarms = Ordered[tuple[float, str]]()
        self._expiring = Ordered[tuple[float, str]]()

    # -- runs

    def entry(self, run_id: str) -> Entry | None:
        """Return a run, expired or not; the caller may change it and `write` it back."""
        return self._entries.get(run_id)

    def add(self, entry: Entry, records: Sequence[bytes]) -> None:
        """Store a new run and its first records."""
        self._entries[entry.run_id] = entry
        self.journals[entry.run_id] = []
        self._newest.add((entry.created, entry.run_id))
        self.write(entry, records)

    def write(self, entry: Entry, records: Sequence[bytes] = ()) -> None:
        """Store a changed run, whose length counts `records` already, and append those."""
        self.journals[entry.run_id].extend(records)
        self._index(entry.run_id, (entry.node, entry.woken, entry.alarm, entry.expires))

    def remove(self, entry: Entry) -> None:
        """Forget a run with its records, cells, mail and watches."""
        run_id = entry.run_id
        self._index(run_id, NOT_INDEXED)
        self._newest.discard((entry.created, run_id))
        for table in (self._entries, self.journals, self._indexed):
            del table[run_id]
        self._spaces.pop(run_id, None)
        self._mail.pop(run_id, None)
        self._watchers.pop(run_id, None)

    def _index(self, run_id: str, new: Indexed) -> None:
        old = self._indexed.get(run_id, NOT_INDEXED)
        if old == new:
            return
        self._indexed[run_id] = new
        _move(self._owned, old[0], new[0], run_id)
        _move(self._alarms, old[2], new[2], run_id)
        _move(self._expiring, old[3], new[3], run_id)
        if old[1] != new[1]:
            (self._woken.add if new[1] else self._woken.discard)((run_id,))

    def expired(self, now: float, limit: int) -> list[Entry]:
        """Return runs to purge."""
        self._forget_replies(now)
        keys = _until(self._expiring.after(None), now)
        return [self._entries[run_id] for _, run_id in islice(keys, limit)]

    def newest(self, query: Query, after: tuple[float, str] | None, limit: int) -> list[Entry]:
        """Return runs, newest first, from behind (`created`, `run_id`) on."""
        entries = (self._entries[run_id] for _, run_id in self._newest.before(after))
        return list(islice((entry for entry in entries if _matches(entry, query)), limit))

    # -- nodes

    def lease(self, node: str) -> float | None:
        """Return when the node's lease expires or expired; `None` if it has none."""
        return self._leases.get(node)

    def set_lease(self, node: str, expires: float | None) -> None:
        """Start, extend or (`None`) end a node's lease."""
        if expires is None:
            self._leases.pop(node, None)
        else:
            self._leases[node] = expires

    def leases(self) -> dict[str, float]:
        """Return every lease, expired or not."""
        return self._leases

    def owners(self) -> list[str]:
        """Return the nodes that own runs."""
        return list(dict.fromkeys(node for node, _ in self._owned.after(None)))

    # -- what needs somebody

    def dead(self, now: float, after: tuple[str, str] | None, limit: int) -> list[Entry]:
        """Return runs whose owner has no lease, by (`node`, `run_id`)."""
        keys = (key for key in self._owned.after(after) if self._leases.get(key[0], now) <= now)
        return [self._entries[run_id] for _, run_id in islice(keys, limit)]

    def woken(self, node: str, after: str | None, limit: int) -> list[Entry]:
        """Return woken runs that nobody or `node` owns, by `run_id`."""
        keys = self._woken.after(None if after is None else (after,))
        return list(islice(self._for(node, (run_id for (run_id,) in keys)), limit))

    def alarms(self, node: str, now: float, after: tuple[float, str] | None, limit: int) -> list[Entry]:
        """Return runs that nobody or `node` owns and whose alarm is due, by (`alarm`, `run_id`)."""
        keys = _until(self._alarms.after(after), now)
        return list(islice(self._for(node, (run_id for _, run_id in keys)), limit))

    def _for(self, node: str, run_ids: Iterable[str]) -> Iterable[Entry]:
        entries = (self._entries[run_id] for run_id in run_ids)
        return (entry for entry in entries if entry.node is None or entry.node == node)

    # -- cells

    def space(self, entry: Entry, name: str) -> SpaceEntry | None:
        """Return a space; the caller may change it and `write_space` it back."""
        space = self._space(entry, name)
        return None if space is None else space.entry

    def write_space(
        self, entry: Entry, space: SpaceEntry, header: bytes | None, cells: Mapping[int, bytes]
    ) -> None:
        """Store a new or changed space, its header unless that is `None`, and these of its cells."""
        kept = self._spaces.setdefault(entry.run_id, {}).setdefault(space.name, _Space(space))
        kept.header = kept.header if header is None else header
        kept.cells.update(cells)

    def read_space(self, entry: Entry, name: str, numbers: range) -> Space | None:
        """Return a space as callers see it, with those of the numbered cells that are there."""
        space = self._space(entry, name)
        if space is None:
            return None
        cells = {number: space.cells[number] for number in numbers if number in space.cells}
        return Space(space.entry.version, space.header, cells)

    def _space(self, entry: Entry, name: str) -> _Space | None:
        return self._spaces.get(entry.run_id, {}).get(name)

    # -- mail

    def has_mail(self, run_id: str, mail_id: str) -> bool:
        """Tell whether this mail is unread."""
        return mail_id in self._mail.get(run_id, ())

    def add_mail(self, run_id: str, mail: Mail) -> None:
        """Store mail."""
        self._mail.setdefault(run_id, {})[mail.id] = mail

    def take_mail(self, run_id: str, mail_id: str) -> str | None:
        """Remove mail and return its sender; `None` if it is not there."""
        mail = self._mail.get(run_id, {}).pop(mail_id, None)
        return None if mail is None else mail.sender

    def mail(self, run_id: str) -> list[Mail]:
        """Return unread mail, oldest first."""
        return list(self._mail.get(run_id, {}).values())

    def reply(self, mail_id: str, now: float) -> bytes | None:
        """Return a reply that has not expired."""
        expires, reply = self._replies.get(mail_id, (now, b""))
        return reply if expires > now else None

    def add_reply(self, answer: Answer, expires: float) -> None:
        """Store a reply."""
        self._replies[answer.mail_id] = (expires, answer.reply)

    def _forget_replies(self, now: float) -> None:
        """Drop expired replies; the oldest stands first, because all are kept for the same time."""
        while self._replies:
            mail_id, (expires, _) = next(iter(self._replies.items()))
            if expires > now:
                return
            del self._replies[mail_id]

    # -- watchers

    def watchers(self, run_id: str) -> list[str]:
        """Return the nodes that watch a run."""
        return list(self._watchers.get(run_id, ()))

    def watch(self, run_id: str, node: str) -> None:
        """Add a watcher. Idempotent."""
        self._watchers.setdefault(run_id, {})[node] = None

    def unwatch(self, run_id: str, node: str) -> None:
        """Remove a watcher. Idempotent."""
        self._watchers.get(run_id, {}).pop(node, None)

    def notify(self, node: str, notice: Notice) -> None:
        """Send a hint to a node."""
        self._notify(node, notice)


def _move(index: Ordered[Any], old: Any, new: Any, run_id: str) -> None:
    if old == new:
        return
    if old is not None:
        index.discard((old, run_id))
    if new is not None:
        index.add((new, run_id))


def _until(keys: Iterable[tuple[float, str]], now: float) -> Iterable[tuple[float, str]]:
    for key in keys:
        if key[0] > now:
            return
        yield key


def _matches(entry: Entry, query: Query) -> bool:
    return query.status in (None, entry.status) and query.reactor in (None, entry.reactor)
