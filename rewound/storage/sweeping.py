"""The rules of looking after runs, over `Tables`: listing, attention, purging."""

from collections import Counter
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct

from rewound.errors import InputError
from rewound.storage.entries import Entry, Tables
from rewound.storage.protocol import Attention, Need, Page, Query

__all__ = ["Sweep", "attention", "listing", "purge"]

T = TypeVar("T")
Reason = Literal["dead", "wake", "alarm"]
Place = tuple[str | float, str]
REASONS: tuple[Reason, ...] = get_args(Reason)


def listing(tables: Tables, query: Query, cursor: str | None, limit: int, now: float) -> Page:
    """List one page, newest first; the cursor names its last row, so that new rows do not shift it."""
    after = None if cursor is None else read_cursor(cursor, tuple[float, str])
    entries = tables.newest(query, after, limit)
    heads = [entry.head() for entry in entries if not has_expired(entry, now)]
    full = len(entries) == limit
    return Page(heads, write_cursor((entries[-1].created, entries[-1].run_id)) if full else None)


def purge(tables: Tables, limit: int, now: float) -> int:
    """Remove expired runs."""
    entries = tables.expired(now, limit)
    for entry in entries:
        tables.remove(entry)
    return len(entries)


class Sweep(Struct, frozen=True):
    """Who asks for attention, and for what: see `Storage.attention`."""

    node: str
    reactors: frozenset[str]
    lease: float
    limit: int = 100


def attention(tables: Tables, sweep: Sweep, cursor: str | None, now: float) -> Attention:
    """Look at up to `limit` runs that need somebody: first the dead nodes', then the woken, then alarms."""
    start, place = ("dead", None) if cursor is None else read_cursor(cursor, tuple[Reason, Place])
    page = _Page(tables, sweep, now)
    for reason in REASONS[REASONS.index(start) :]:
        entries = page.look(reason, place)
        last = _place(reason, entries[-1]) if entries else None
        for entry in entries:
            page.consider(entry, reason)
        if page.left == 0:
            return page.close(write_cursor((reason, last)))
        place = None
    return page.close(None)


def has_expired(entry: Entry, now: float) -> bool:
    """Tell whether the run's retention has passed."""
    return entry.expires is not None and entry.expires <= now


class _Page:
    """What one page of attention has found so far, and how many entries it may still look at."""

    def __init__(self, tables: Tables, sweep: Sweep, now: float) -> None:
        self.left = sweep.limit
        self._tables, self._sweep, self._now = tables, sweep, now
        self._needs: dict[str, Need] = {}
        self._unknown: dict[str, str] = {}

    def look(self, reason: Reason, place: Any) -> list[Entry]:
        if reason == "dead":
            return self._tables.dead(self._now, place, self.left)
        if reason == "wake":
            return self._tables.woken(self._sweep.node, place and place[1], self.left)
        return self._tables.alarms(self._sweep.node, self._now, place, self.left)

    def consider(self, entry: Entry, reason: Reason) -> None:
        self.left -= 1
        if has_expired(entry, self._now) or entry.run_id in self._needs:
            return
        if entry.reactor not in self._sweep.reactors:
            self._unknown[entry.run_id] = entry.reactor
            return
        if reason == "alarm":
            entry.alarm = self._now + self._sweep.lease
            self._tables.write(entry)
        self._needs[entry.run_id] = Need(entry.head(), reason)

    def close(self, cursor: str | None) -> Attention:
        return Attention(list(self._needs.values()), dict(Counter(self._unknown.values())), cursor)


def _place(reason: Reason, entry: Entry) -> tuple[Any, str]:
    """Name an entry's place in the order of its index, before `look_at` moves it."""
    first = {"dead": entry.node, "wake": "", "alarm": entry.alarm}[reason]
    return first, entry.run_id


def write_cursor(parts: Any) -> str:
    """Return a cursor that `read_cursor` takes apart."""
    return msgspec.json.encode(parts).decode()


def read_cursor(cursor: str, form: type[T]) -> T:
    """Take a cursor apart, or name it as the caller's mistake."""
    try:
        return msgspec.json.decode(cursor, type=form)
    except msgspec.DecodeError as error:
        message = f"{cursor!r} is no cursor of this listing; start again without one"
        raise InputError("runs", {"cursor": message}) from error
