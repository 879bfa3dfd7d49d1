"""Notices a body that blocks the event loop, and says which."""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from rewound.actors import SystemClock
from rewound.runtime.logs import LIMIT, log_event
from rewound.runtime.owners.bodies import Bodies
from rewound.runtime.owners.services import Services

__all__ = ["innermost", "watching"]

_BODIES = (Bodies.run_step.__code__, Bodies.run_handler.__code__)


@contextmanager
def watching(services: Services) -> Generator[None]:
    """Watch the event loop from a thread of its own while the block runs.

    A loop that does not turn for half a lease is about to lose its claims; the step that holds it and the
    loop's stack are logged, once per block. Virtual clocks have nothing to watch.
    """
    if not isinstance(services.clock, SystemClock):
        yield
        return
    watchdog = _Watchdog(services)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


class _Watchdog:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._patience = services.settings.lease / 2
        self._loop_thread = threading.get_ident()
        self._beat = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rewound-watchdog", daemon=True)

    def start(self) -> None:
        self._arm()
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._alarm.cancel()
        self._thread.join()

    def _arm(self) -> None:
        clock = self._services.clock
        self._beat = time.monotonic()
        self._alarm = clock.alarm(clock.now() + self._patience / 4, self._arm)

    def _watch(self) -> None:
        told = 0.0
        while not self._done.wait(self._patience / 4):
            blocked = time.monotonic() - self._beat
            if blocked > self._patience and told != self._beat:
                told = self._beat
                self._tell(blocked)

    def _tell(self, blocked: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - documented
        log_event(
            "rewound.step.blocking",
            logging.ERROR,
            step=_step_in(frame),
            seconds=round(blocked, 2),
            reason="it blocks the event loop; make it a plain def (it then runs in a thread), or await",
            stack=innermost(frame),
        )


def innermost(frame: FrameType | None) -> str:
    """Format the end of a stack, as much of it as a log event shows."""
    kept: list[str] = []
    room = LIMIT - 1
    for line in reversed(traceback.format_stack(frame, limit=30) if frame else []):
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return "".join(reversed(kept))


def _step_in(frame: FrameType | None) -> str | None:
    """Find the body that runs in a stack by the frame that started it."""
    while frame is not None:
        if frame.f_code in _BODIES:
            step, bodies = frame.f_locals["step"], frame.f_locals["self"]
            return f"{bodies.reactor}.{step.name}"
        frame = frame.f_back
    return None
