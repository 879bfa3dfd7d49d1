"""What the maps' cases run: elements of one no-op step, taken from a source that yields short rows."""

from collections.abc import AsyncIterator
from time import perf_counter, process_time
from typing import Any

import anyio

from benchmarks.reactors import Tracer
from rewound import Context, Page, Reactor, Results, element, fan_out, source, step

__all__ = ["RESULT", "Element", "Failing", "Marks", "OneByOne", "Resumable", "Steady", "TenByTen", "nested"]

RESULT = "r" * 62
"""64 bytes as it is stored."""

WAIT = 0.005


class Marks:
    """When things happened, by name: on the clock, and in this process's own time.

    The latter tells two phases apart on a machine that has other things to do.
    """

    def __init__(self) -> None:
        self._times: dict[str, tuple[float, float]] = {}

    def note(self, name: str) -> None:
        """Note that something happens now."""
        self._times[name] = (perf_counter(), process_time())

    def between(self, first: str, second: str) -> float:
        """Return the seconds from one to the other."""
        return self._times[second][0] - self._times[first][0]

    def worked(self, first: str, second: str) -> float:
        """Return the seconds that this process has worked from one to the other."""
        return self._times[second][1] - self._times[first][1]


class Element(Reactor[str]):
    """One step that returns 64 bytes."""

    row: str

    @step
    async def work(self) -> str:
        """Do nothing."""
        return RESULT

    @work.undo
    async def back(self) -> None:
        """Do nothing."""


class Fragile(Reactor[str]):
    """An element that fails if its row says so."""

    row: str

    @step
    async def work(self, ctx: Context[Any]) -> str:
        """Fail, or do nothing."""
        if self.row.endswith("!"):
            ctx.state["marks"].note("failed")
            raise ValueError(self.row)
        return RESULT

    @work.undo
    async def back(self) -> None:
        """Do nothing."""


class Slow(Element):
    """An element whose undo waits."""

    @Element.work.undo
    async def back(self) -> None:
        """Wait 5 ms."""
        await anyio.sleep(WAIT)


class TracedElement(Reactor[str]):
    """An element that is traced by `ctx.state["tracer"]`."""

    row: str

    @step
    async def work(self, ctx: Context[Any]) -> str:
        """Be traced."""
        tracer: Tracer = ctx.state["tracer"]
        await tracer.row(ctx, self.row)
        return RESULT


class Rows(Reactor[int]):
    """Yields rows of 15 bytes, of which one may be bad."""

    n: int
    bad: int = -1

    @source
    async def rows(self) -> AsyncIterator[str]:
        """Yield `n` rows."""
        for number in range(self.n):
            yield f"order-{number:08}{'!' * (number == self.bad)}"


class Steady(Rows):
    """All elements complete."""

    elements = fan_out(Element, over="rows", batch_size=50)

    @elements.collect
    async def count(self, elements: Results[str]) -> int:
        """Count them."""
        return len(elements)


class Failing(Rows):
    """An element fails, so that everything is taken back."""

    elements = fan_out(Fragile, over="rows", batch_size=50)

    @elements.collect
    async def count(self, elements: Results[str]) -> int:
        """Count them; it does not come to that."""
        return len(elements)


class TenByTen(Rows):
    """Ten elements at a time; then a step fails."""

    elements = fan_out(Slow, over="rows", batch_size=10)

    @step
    async def fail(self, elements: Results[str], ctx: Context[Any]) -> int:
        """Have everything taken back."""
        ctx.state["marks"].note("failed")
        raise ValueError(len(elements))


class OneByOne(TenByTen):
    """One element at a time; then a step fails."""

    elements = fan_out(Slow, over="rows", batch_size=1)


class Resumable(Reactor[int]):
    """A map that goes on after a crash, source and all."""

    n: int

    @source
    async def rows(self, cursor: int | None) -> AsyncIterator[Page[str]]:
        """Yield pages of 100 rows."""
        for first in range(cursor or 0, self.n, 100):
            behind = min(first + 100, self.n)
            yield Page([f"order-{number:08}" for number in range(first, behind)], behind)

    elements = fan_out(TracedElement, over=rows, batch_size=50)

    @elements.collect
    async def count(self, elements: Results[str]) -> int:
        """Count the elements that completed."""
        return len([each async for each in elements])


class Nested(Reactor[int]):
    """An element of one of several maps in maps."""

    row: int


class Leaf(Nested):
    """The innermost element."""

    @step
    async def work(self) -> int:
        """Do nothing."""
        return self.row


def nested(depth: int) -> type[Nested]:
    """Make a reactor with maps in maps, `depth` deep, two elements in each; it counts the innermost."""
    inner = Leaf if depth == 1 else nested(depth - 1)

    class Level(Nested, name=f"Nested{depth}"):
        @step
        async def pair(self) -> list[int]:
            return [1, 1]

        elements = fan_out(inner, over=pair, bind={"row": element()})

        @elements.collect
        async def count(self, elements: Results[int]) -> int:
            return sum([each async for each in elements])

    return Level
