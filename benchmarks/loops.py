"""The event loops to measure on."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal, TypeVar

import anyio
import uvloop

T = TypeVar("T")

__all__ = ["LOOPS", "Loop"]

LOOPS = ("asyncio", "uvloop", "trio")


class Loop:
    """Runs async functions on one kind of event loop.

    Args:
        name: one of `LOOPS`.
    """

    def __init__(self, name: Literal["asyncio", "uvloop", "trio"]) -> None:
        self.name = name

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a function of the library's side."""
        if self.name == "trio":
            return anyio.run(function, backend="trio")
        return anyio.run(function, backend_options={"use_uvloop": self.name == "uvloop"})

    def run_asyncio(self, main: Coroutine[Any, Any, T]) -> T:
        """Run what knows asyncio only, such as redis-py: on uvloop if that is measured, else on asyncio."""
        factory = uvloop.new_event_loop if self.name == "uvloop" else None
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main)
