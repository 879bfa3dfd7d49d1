"""Time that is set by hand: a test about an hour takes no time."""

from collections.abc import Callable

import anyio
from anyio.lowlevel import checkpoint

from rewound.actors.alarms import Alarm, Alarms


class VirtualClock:
    """A clock that stands still until a test calls `advance`.

    Args:
        start: what `now()` returns at first.
        epoch: what `time()` returns at first, in seconds since 1970.

    Example:
        >>> clock = VirtualClock()
        >>> clock.alarm(clock.now() + 3600, rang.set)
        >>> await clock.advance(3600)
    """

    def __init__(self, start: float = 0.0, epoch: float = 1_700_000_000.0) -> None:
        self._now = start
        self._epoch = epoch - start
        self._alarms = Alarms()

    def now(self) -> float:
        """Return the virtual monotonic seconds."""
        return self._now

    def time(self) -> float:
        """Return the virtual wall clock's seconds; it advances with `now()`."""
        return self._epoch + self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by so many seconds."""
        await self.sleep_until(self._now + seconds)

    async def sleep_until(self, at: float) -> None:
        """Wait until the clock was advanced to `at`."""
        if at <= self._now:
            await checkpoint()
            return
        due = anyio.Event()
        alarm = self.alarm(at, due.set)
        try:
            await due.wait()
        finally:
            alarm.cancel()

    def alarm(self, at: float, callback: Callable[[], object]) -> Alarm:
        """Call `callback` during the `advance` that reaches `at`; see `Clock.alarm`."""
        return self._alarms.add(at, callback)

    async def run_alarms(self) -> None:
        """Return at once: `advance` fires the alarms."""
        await checkpoint()

    async def advance(self, seconds: float) -> None:
        """Move time on, firing everything that falls due on the way, in order.

        After each firing all other tasks run until they are blocked, so what an alarm leads to has
        happened at the alarm's own time.

        Args:
            seconds: how far; zero fires what is due now.

        Raises:
            ValueError: the seconds are negative.
        """
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} seconds")
        end = self._now + seconds
        await settled()
        while (at := self._alarms.next_at()) <= end:
            self._now = max(self._now, at)
            self._alarms.fire_next()
            await settled()
        self._now = end

    def __repr__(self) -> str:
        return f"<VirtualClock at {self._now:g} with {len(self._alarms)} alarms>"


async def settled() -> None:
    """Let the other tasks run until all are blocked."""
    # On asyncio, anyio looks again only after 0.1 s when it finds a task that could run. A few rounds
    # of the loop first mean that it rarely finds one.
    for _ in range(25):
        await checkpoint()
    await anyio.wait_all_tasks_blocked()
