"""Callbacks that are due at a time, and the heap that holds them."""

import heapq
import logging
import math
from collections.abc import Callable
from typing import TypeAlias

logger = logging.getLogger("rewound.actors")


class Alarm:
    """A callback that is due at a time; made by `Clock.alarm`.

    Args:
        at: when it is due, in the seconds of the clock's `now()`.
        callback: what is called then, without arguments.
        cancelled: called once, when the alarm is cancelled in time.
    """

    __slots__ = ("__weakref__", "_callback", "_cancelled", "at")

    def __init__(self, at: float, callback: Callable[[], object], cancelled: Callable[[], None]) -> None:
        self.at = at
        self._callback: Callable[[], object] | None = callback
        self._cancelled = cancelled

    @property
    def pending(self) -> bool:
        """Whether the alarm has neither fired nor been cancelled."""
        return self._callback is not None

    def cancel(self) -> None:
        """Take the alarm back; harmless when it has fired or was cancelled before."""
        if self._callback is not None:
            self._callback = None
            self._cancelled()

    def ring(self) -> None:
        """Call the callback, unless it was called or cancelled; what it raises is logged.

        The clock does this when the alarm is due.
        """
        callback, self._callback = self._callback, None
        if callback is None:
            return
        try:
            callback()
        except Exception:
            logger.exception("the callback of an alarm raised: %r", callback)


Entry: TypeAlias = tuple[float, int, Alarm]


class Alarms:
    """A heap of alarms; those of one instant fire in the order they were set."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._serial = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._heap) - self._dead

    def add(self, at: float, callback: Callable[[], object]) -> Alarm:
        """Add an alarm and return it."""
        if math.isnan(at):
            raise ValueError("an alarm cannot be due at NaN; give seconds of the clock's now()")
        alarm = Alarm(at, callback, self._forget)
        self._serial += 1
        heapq.heappush(self._heap, (at, self._serial, alarm))
        return alarm

    def next_at(self) -> float:
        """Return when the next alarm is due; infinity when there is none."""
        heap = self._heap
        while heap and not heap[0][2].pending:
            heapq.heappop(heap)
            self._dead -= 1
        return heap[0][0] if heap else math.inf

    def fire_next(self) -> None:
        """Take the next alarm out and call its callback; its exception is logged."""
        heapq.heappop(self._heap)[2].ring()

    def _forget(self) -> None:
        # Deadlines are mostly cancelled long before they are due. Without this, a busy program with
        # long timeouts would hold every one of them until its time came.
        self._dead += 1
        if self._dead > 64 and self._dead * 2 > len(self._heap):  # noqa: PLR2004 - small heaps may keep them
            self._heap = [entry for entry in self._heap if entry[2].pending]
            heapq.heapify(self._heap)
            self._dead = 0
