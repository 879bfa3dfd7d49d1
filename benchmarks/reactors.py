"""What is run: chains of no-op steps that return a small dict."""

import os
import signal
from typing import Any

import anyio

from rewound import Context, Reactor, step

__all__ = ["FiveSteps", "Small", "ThreeSteps", "TracedSteps", "Tracer"]

Small = dict[str, int]


class ThreeSteps(Reactor[Small]):
    """Three steps, one after the other."""

    number: int

    @step
    async def first(self) -> Small:
        """Do nothing."""
        return {"number": self.number}

    @step
    async def second(self, first: Small) -> Small:
        """Do nothing."""
        return first

    @step
    async def third(self, second: Small) -> Small:
        """Do nothing."""
        return second


class FiveSteps(ThreeSteps):
    """Five steps, one after the other."""

    @step
    async def fourth(self, third: Small) -> Small:
        """Do nothing."""
        return third

    @step
    async def fifth(self, fourth: Small) -> Small:
        """Do nothing."""
        return fourth


class Tracer:
    """Notes in a file which bodies began, and kills the process at one of them.

    Args:
        file: descriptor of the file, opened to append, so that a line is there or not, even after a kill.
        deadly: the how manieth body kills; 0 for none.
    """

    def __init__(self, file: int, deadly: int = 0) -> None:
        self.gate = anyio.Event()
        self._file = file
        self._deadly = deadly
        self._begun = 0

    async def body(self, ctx: Context[Any]) -> None:
        """Note that a body began, once the gate is open."""
        await self.row(ctx, ctx.step)

    async def row(self, ctx: Context[Any], name: str) -> None:
        """Note that the body of an element began, once the gate is open."""
        await self.gate.wait()
        self.note("began", ctx.run_id, name)
        self._begun += 1
        if self._begun == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def note(self, *words: str) -> None:
        """Write one line."""
        os.write(self._file, (" ".join(words) + "\n").encode())


class TracedSteps(Reactor[Small]):
    """Five steps, one after the other, that are traced by `ctx.state["tracer"]`."""

    number: int

    @step
    async def first(self, ctx: Context[Any]) -> Small:
        """Be traced."""
        await ctx.state["tracer"].body(ctx)
        return {"number": self.number}

    @step
    async def second(self, first: Small, ctx: Context[Any]) -> Small:
        """Be traced."""
        await ctx.state["tracer"].body(ctx)
        return first

    @step
    async def third(self, second: Small, ctx: Context[Any]) -> Small:
        """Be traced."""
        await ctx.state["tracer"].body(ctx)
        return second

    @step
    async def fourth(self, third: Small, ctx: Context[Any]) -> Small:
        """Be traced."""
        await ctx.state["tracer"].body(ctx)
        return third

    @step
    async def fifth(self, fourth: Small, ctx: Context[Any]) -> Small:
        """Be traced."""
        await ctx.state["tracer"].body(ctx)
        return fourth
