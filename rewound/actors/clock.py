"""What actors know about time, and the machine's clock.

A clock keeps all its alarms in one heap, served by one task, however many there are.
"""

import time
from collections.abc import Callable
from typing import Protocol

import anyio

from rewound.actors.alarms import Alarm, Alarms


class Clock(Protocol):
    """What actors and owners need to know about time; `SystemClock` and `VirtualClock` are two."""

    def now(self) -> float:
        """Return monotonic seconds; only differences mean anything."""
        ...

    def time(self) -> float:
        """Return the wall clock's time in seconds since 1970, UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Wait until `now()` is at least `at`."""
        ...

    def alarm(self, at: float, callback: Callable[[], object]) -> Alarm:
        """Call `callback` when `now()` reaches `at`.

        The callback is synchronous and is called from the clock's own task. What it raises is logged.

        Args:
            at: when, in seconds of `now()`; a time that has passed means at once.
            callback: called without arguments.

        Returns:
            the alarm, which can be cancelled.

        Example:
            >>> alarm = clock.alarm(clock.now() + 30, lambda: ref.signal("late", Late()))
            >>> alarm.cancel()
        """
        ...

    async def run_alarms(self) -> None:
        """Serve the alarms until cancelled; a `Supervisor` does this for its clock."""
        ...


class SystemClock:
    """The machine's clock. Its alarms fire while `run_alarms` runs in some task.

    Example:
        >>> clock = SystemClock()
        >>> async with anyio.create_task_group() as tasks:
        ...     tasks.start_soon(clock.run_alarms)
        ...     clock.alarm(clock.now() + 1, tasks.cancel_scope.cancel)
    """

    def __init__(self) -> None:
        self._alarms = Alarms()
        self._sooner: anyio.Event | None = None

    def now(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()

    def time(self) -> float:
        """Return `time.time()`."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds; zero or less lets other tasks run once."""
        await self.sleep_until(self.now() + seconds)

    async def sleep_until(self, at: float) -> None:
        """Wait until `now()` is at least `at`."""
        await anyio.sleep(max(0.0, at - self.now()))
        # An event loop may round a deadline down to its own resolution (uvloop: 1 ms).
        while (left := at - self.now()) > 0:  # noqa: ASYNC110 - waits for time, so there is no event
            await anyio.sleep(left)

    def alarm(self, at: float, callback: Callable[[], object]) -> Alarm:
        """Call `callback` when `now()` reaches `at`; see `Clock.alarm`."""
        sooner = at < self._alarms.next_at()
        alarm = self._alarms.add(at, callback)
        if sooner and self._sooner is not None:
            self._sooner.set()
            self._sooner = None
        return alarm

    async def run_alarms(self) -> None:
        """Fire alarms as they fall due, until cancelled.

        Several tasks may run this for one clock (two supervisors that share it); an alarm fires once.
        """
        while True:
            self._fire_due()
            if self._sooner is None:
                self._sooner = anyio.Event()
            with anyio.move_on_after(self._alarms.next_at() - self.now()):
                await self._sooner.wait()

    def _fire_due(self) -> None:
        # A callback may set an alarm for now: `now` is read once, so that it waits for the next round
        # and a callback that re-arms itself cannot keep the loop.
        now = self.now()
        while self._alarms.next_at() <= now:
            self._alarms.fire_next()
