"""Waiting no longer than so many seconds of a clock that may be virtual."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from rewound.actors import Clock

T = TypeVar("T")

__all__ = ["within"]


async def within(clock: Clock, seconds: float | None, wait: Callable[[], Awaitable[T]]) -> T:
    """Return what `wait` returns; raise `TimeoutError` after `seconds` (`None`: wait for ever)."""
    if seconds is None:
        return await wait()
    with anyio.CancelScope() as scope:
        alarm = clock.alarm(clock.now() + seconds, scope.cancel)
        try:
            return await wait()
        finally:
            alarm.cancel()
    raise TimeoutError(f"nothing came within {seconds:g} s")
