"""A run's place in the queue for slots."""

from collections import deque
from collections.abc import Callable

from rewound.actors import Slots, SlotWait

__all__ = ["Turns"]


class Turns:
    """Slots for the bodies that one owner wants to start; it never waits for them itself.

    Args:
        slots: the node's.
        wake: called when a slot was granted later; the owner then takes again.
        granted: slots that were taken for it already.
    """

    __slots__ = ("_granted", "_slots", "_waits", "_wake")

    def __init__(self, slots: Slots, wake: Callable[[], object], granted: int = 0) -> None:
        self._slots = slots
        self._wake = wake
        self._granted = granted
        self._waits: deque[SlotWait] = deque()

    def take(self, wanted: int) -> int:
        """Take up to `wanted` slots now, and queue for the rest; hand back what is not wanted any more."""
        granted = min(wanted, self._granted)
        spare, self._granted = self._granted - granted, 0
        if spare:
            self._slots.give(spare)
        granted += self._slots.take(wanted - granted) if wanted > granted else 0
        self._queue(wanted - granted)
        return granted

    def close(self) -> None:
        """Leave the queue and hand back what was granted."""
        self.take(0)

    def _queue(self, missing: int) -> None:
        while len(self._waits) > missing:
            self._waits.pop().cancel()
        while len(self._waits) < missing:
            self._waits.append(self._slots.wait(self._grant))

    def _grant(self) -> None:
        # The slots serve in order, so it is the oldest wait that was granted; and never at once, because
        # a wait follows a `take` that fell short.
        self._waits.popleft()
        self._granted += 1
        self._wake()
