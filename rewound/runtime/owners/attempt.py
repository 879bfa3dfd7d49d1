"""One attempt of a body: a step's, an undo's or a compensate's."""

import random
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
from anyio import CancelScope, CapacityLimiter

from rewound.actors import Clock, Slots
from rewound.errors import Halt
from rewound.runtime.declare import Retry, describe_error
from rewound.runtime.engine.messages import Failure, Halting, Interrupted, Result

__all__ = ["Attempt"]


class Attempt:
    """Runs user code once, under a timeout, so that it can be cut off.

    Args:
        clock: for the timeout.
        threads: bounds the worker threads that plain `def` bodies run in.
    """

    __slots__ = ("_clock", "_expired", "_queueing", "_scope", "_threads", "cut_off")

    def __init__(self, clock: Clock, threads: CapacityLimiter) -> None:
        self._clock = clock
        self._threads = threads
        self._scope = CancelScope()
        self._queueing: CancelScope | None = None
        self._expired = False
        self.cut_off = False

    def cut(self) -> None:
        """Cancel the body. One that swallows that, or runs in a thread, ends in its own time."""
        self.cut_off = True
        self._scope.cancel()
        if self._queueing is not None:
            self._queueing.cancel()

    def _expire(self) -> None:
        self._expired = not self.cut_off  # what was cut off is not late, however long it tidies up
        self._scope.cancel()

    async def turn(self, slots: Slots) -> bool:
        """Wait for a slot and take it; `False` if the attempt was cut off before it had one."""
        if self.cut_off:
            return False
        with CancelScope() as self._queueing:
            await slots.acquire()
            return True
        return False

    async def run(self, body: Callable[[], Any], *, in_thread: bool, limit: float | None) -> Any:
        """Return what the body returns.

        Args:
            body: the call, without arguments; a coroutine function, or a plain one with `in_thread`.
            in_thread: run it in a worker thread; a timeout is then noticed when the thread returns.
            limit: seconds it may take.

        Raises:
            TimeoutError: the body took longer.
            _CutOff: it was cut off.
        """
        if self.cut_off:
            raise _CutOff  # before it began: a cancelled scope would let it run to its first await
        if limit is None:
            return await self._run(body, in_thread=in_thread)
        alarm = self._clock.alarm(self._clock.now() + limit, self._expire)
        try:
            return await self._run(body, in_thread=in_thread)
        except _CutOff:
            if self._expired:
                raise TimeoutError(f"took longer than its timeout of {limit:g} s") from None
            raise
        finally:
            alarm.cancel()

    async def _run(self, body: Callable[[], Any], *, in_thread: bool) -> Any:
        with self._scope:
            if not in_thread:
                return await body()
            value = await anyio.to_thread.run_sync(body, limiter=self._threads)
            if not self._expired:
                return value
        raise _CutOff


class _CutOff(Exception):  # noqa: N818 - a signal between two functions, not an error
    """The body ended by the cancellation of its scope."""


def failure_of(
    error: BaseException, *, step: str, attempt: int, retry: Retry, started: bool = True
) -> Result:
    """Return what an exception out of a body means.

    Rule S8: whatever its class, it is a failure of the step. The exceptions to that are let through:
    interpreter exit, and a cancellation that the runtime asked for.
    """
    if isinstance(error, _CutOff):
        return Interrupted()
    halt = _halt_in(error)
    if halt is not None:
        return Halting(halt.reason)
    cancelled = isinstance(error, anyio.get_cancelled_exc_class())
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit) or (cancelled and _asked_for()):
        raise error
    described = describe_error(error, step=step, attempts=attempt if started else 0)
    retryable = isinstance(error, Exception) and retry.retries(error)
    return Failure(described, retryable, random.random(), started)  # noqa: S311 - jitter is no secret


def _halt_in(error: BaseException) -> Halt | None:
    """Find a `Halt`, also one that a task group of the body has wrapped."""
    if isinstance(error, Halt):
        return error
    members: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _halt_in(members[0]) if isinstance(error, BaseExceptionGroup) and len(members) == 1 else None


def _asked_for() -> bool:
    """Whether a scope around this task was cancelled; a bare `raise CancelledError` is user code's."""
    return anyio.current_effective_deadline() == float("-inf")
