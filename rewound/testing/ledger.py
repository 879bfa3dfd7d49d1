"""What bodies did, written down where no crash reaches it."""

import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
from msgspec import Struct

from rewound import Context
from rewound.actors import VirtualClock

__all__ = ["Entry", "Ledger"]

Way = Literal["forward", "undo", "compensate", "undo_all"]
_WAYS: tuple[Way, ...] = ("forward", "undo", "compensate", "undo_all")


class Entry(Struct):
    """One body, undo or compensate that began.

    Args:
        life: which process ran it, from 1: each crash begins another one.
        run_id: the run.
        path: the step with the way to it, such as `charge` or `orders/3/charge`.
        generation: how often the run had been started over by `retry`.
        kind: the body of the step, or which of its handlers.
        attempt: which attempt.
        key: its idempotency key.
        began: when, in seconds of the virtual clock.
        end: how it ended; `None` if the process died under it or cut it off.
        ended: when it ended.
        last: how many entries there were when it ended.
    """

    life: int
    run_id: str
    path: str
    generation: int
    kind: Way
    attempt: int
    key: str
    began: float
    end: Literal["returned", "raised"] | None = None
    ended: float | None = None
    last: int = 0

    @property
    def same(self) -> tuple[str, int]:
        """What a repeat of it has in common with it."""
        return self.key, self.attempt

    def __str__(self) -> str:
        """Name it in a message."""
        again = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        return f"{'body' if self.kind == 'forward' else self.kind} of {self.path}{again}"


class Ledger:
    """Where the bodies of a scenario write down that they ran; also the world that they act on.

    It outlives the crashes of a sweep, as a bank or a mail server does. Bodies find it as
    `ctx.state["ledger"]`.

    Args:
        clock: the clock of the sweep.

    Attributes:
        entries: everything that began, in order.
        world: whatever the scenario likes to remember across crashes.

    Example:
        >>> @step
        ... async def charge(self, ctx: Context) -> None:
        ...     async with ctx.state["ledger"].running(ctx):
        ...         ...
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.entries: list[Entry] = []
        self.world: dict[str, Any] = {}
        self.life = 0
        self._clock = clock
        self._news = anyio.Event()

    @asynccontextmanager
    async def running(self, ctx: Context[Any], seconds: float | None = None) -> AsyncGenerator[Entry]:
        """Write down that a body or handler begins, take time, and write down how it ends.

        Args:
            ctx: its context.
            seconds: how long it takes on the virtual clock. Default: between 1 and 2, always the same for
                the same step and element, so that elements end in another order than they began in.

        Raises:
            ValueError: the names on the way to the step are so long that its key is a hash.
        """
        entry = self._begin(ctx)
        try:
            await self._clock.sleep(_length(entry) if seconds is None else seconds)
            yield entry
        except Exception:
            self._end(entry, "raised")
            raise
        self._end(entry, "returned")

    async def began(self, path: str, kind: Way = "forward") -> None:
        """Wait until a step's body, or a handler of it, has begun; now or before a crash."""
        while not self.times(path, kind):
            await self._news.wait()

    def times(self, path: str, kind: Way = "forward") -> int:
        """Count how often a step's body, or a handler of it, began."""
        return sum((entry.path, entry.kind) == (path, kind) for entry in self.entries)

    def paths(self, kind: Way = "forward", under: str = "") -> list[str]:
        """List the steps whose bodies (or handlers of a kind) returned, in the order of the last time.

        Args:
            kind: the body, or which handler.
            under: only those on the way below this, such as `orders/`.
        """
        ended = [
            entry
            for entry in self.entries
            if entry.kind == kind and entry.end == "returned" and entry.path.startswith(under)
        ]
        last = {entry.path: entry.last for entry in ended}
        return sorted(last, key=lambda path: last[path])

    def standing(self) -> set[str]:
        """Name the steps that returned, or were cut off, and that no later undo or compensate took back."""
        standing: dict[str, None] = {}
        for entry in self.entries:
            if entry.kind == "forward" and entry.end != "raised":
                standing[entry.path] = None
            elif entry.kind == "forward" or entry.end == "returned":
                standing.pop(entry.path, None)
        return set(standing)

    def most_in_flight(self, under: str) -> int:
        """Count how many elements below this path ran at once, forward or back, at most; each life anew."""
        return max((self._most(under, life) for life in range(1, self.life + 1)), default=0)

    def _most(self, under: str, life: int) -> int:
        running: Counter[str] = Counter()
        most = 0
        for _, change, element in sorted(_changes(self.entries, under, life), key=lambda each: each[:2]):
            running[element] += change
            most = max(most, sum(count > 0 for count in running.values()))
        return most

    def _begin(self, ctx: Context[Any]) -> Entry:
        rest, _, kind = ctx.idempotency_key.rpartition(":")
        path, _, generation = rest.removeprefix(f"{ctx.run_id}:").rpartition(":")
        way: Way | None = next((each for each in _WAYS if each == kind), None)
        if way is None:
            raise ValueError(f"the way to step {ctx.step!r} is too long to be told from its idempotency key")
        entry = Entry(
            life=self.life,
            run_id=ctx.run_id,
            path=path,
            generation=int(generation),
            kind=way,
            attempt=ctx.attempt,
            key=ctx.idempotency_key,
            began=self._clock.now(),
        )
        self.entries.append(entry)
        self._news.set()
        self._news = anyio.Event()
        return entry

    def _end(self, entry: Entry, how: Literal["returned", "raised"]) -> None:
        entry.end, entry.ended, entry.last = how, self._clock.now(), len(self.entries)


def _length(entry: Entry) -> float:
    return 1 + zlib.crc32(f"{entry.path}:{entry.kind}".encode()) % 4 / 4


def _changes(entries: Iterable[Entry], under: str, life: int) -> Iterable[tuple[float, int, str]]:
    for entry in entries:
        if entry.life == life and entry.path.startswith(under):
            element = entry.path.removeprefix(under).partition("/")[0]
            yield entry.began, 1, element
            yield float("inf") if entry.ended is None else entry.ended, -1, element
