"""A bound on how much is under way, shared by callbacks and tasks."""

import logging
from collections import OrderedDict
from collections.abc import Callable

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from rewound.errors import ActorError

logger = logging.getLogger("rewound.actors")


class SlotWait:
    """A place in the queue for a slot; made by `Slots.wait`.

    Args:
        queue: where it stands.
        callback: called when its turn has come.
    """

    __slots__ = ("_queue", "callback")

    def __init__(self, queue: "OrderedDict[SlotWait, None]", callback: Callable[[], object]) -> None:
        self._queue = queue
        self.callback = callback

    def cancel(self) -> bool:
        """Leave the queue.

        Returns:
            True if it was waiting; False if the slot has been granted (or it was cancelled before).
        """
        if self not in self._queue:
            return False
        del self._queue[self]
        return True


class Slots:
    """Counts what is under way, up to a limit. Those who wait are served in the order they came.

    Unlike a semaphore it grants slots to callbacks as well, so that an actor can wait for one without
    a task.

    Args:
        limit: the most slots in use at a time.

    Raises:
        ValueError: the limit is not positive.

    Example:
        >>> slots = Slots(10)
        >>> slots.take(12)
        10
        >>> waiting = slots.wait(lambda: ref.signal("slot", SlotGranted()))
        >>> slots.give()
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"there must be at least one slot; limit={limit!r} is not positive")
        self._limit = limit
        self._in_use = 0
        self._queue: OrderedDict[SlotWait, None] = OrderedDict()
        self._granting = False

    @property
    def limit(self) -> int:
        """The most slots in use at a time."""
        return self._limit

    @property
    def in_use(self) -> int:
        """How many slots are taken."""
        return self._in_use

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._queue)

    def take(self, wanted: int = 1) -> int:
        """Take as many of the wanted slots as are free, without waiting.

        Returns:
            how many were taken; none while others wait.
        """
        granted = 0 if self._queue else max(0, min(wanted, self._limit - self._in_use))
        self._in_use += granted
        return granted

    def give(self, count: int = 1) -> None:
        """Give slots back, and grant them to those who wait.

        Raises:
            ActorError: more were given back than taken.
        """
        if count > self._in_use:
            raise ActorError(f"{count} slots were given back, but only {self._in_use} are in use")
        self._in_use -= count
        self._grant()

    def wait(self, callback: Callable[[], object]) -> SlotWait:
        """Call `callback` once a slot was taken for it; before this returns, if one is free.

        Args:
            callback: synchronous, without arguments. If it raises, that is logged and its slot goes to
                the next.

        Returns:
            the place in the queue, which can be cancelled.
        """
        place = SlotWait(self._queue, callback)
        self._queue[place] = None
        self._grant()
        return place

    async def acquire(self) -> None:
        """Wait for a slot and take it. A cancelled `acquire` has taken none."""
        await checkpoint_if_cancelled()
        if self.take():
            return
        granted = anyio.Event()
        place = self.wait(granted.set)
        try:
            await granted.wait()
        except BaseException:
            if not place.cancel():
                self.give()
            raise

    def release(self) -> None:
        """Give back the slot of an `acquire`."""
        self.give()

    def _grant(self) -> None:
        # A callback may give its slot back at once. The loop below sees that; to grant from within would
        # nest as deep as the queue is long.
        if self._granting:
            return
        self._granting = True
        try:
            while self._queue and self._in_use < self._limit:
                place, _ = self._queue.popitem(last=False)
                self._in_use += 1
                self._call(place.callback)
        finally:
            self._granting = False

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception:
            logger.exception("the callback of a granted slot raised: %r", callback)
            self._in_use -= 1

    def __repr__(self) -> str:
        return f"<Slots: {self._in_use} of {self._limit} in use, {self.waiting} waiting>"
