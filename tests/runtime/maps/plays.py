"""The reactors with maps that these tests perform on a `Board`."""

from collections.abc import Callable
from typing import Any

import anyio

from rewound import Reactor, Results, StepError, fan_out, map_each, step
from rewound.storage.forward import Forward
from rewound.storage.protocol import Space
from tests.runtime.nodes import Stage
from tests.runtime.plays import Stagehand, act

__all__ = [
    "Billing",
    "Board",
    "Charge",
    "Framed",
    "Hiding",
    "Lenient",
    "Order",
    "Shipping",
    "TwoSteps",
    "rows",
]

PATIENCE = 30
"""Seconds within which something must happen; only a broken test waits that long."""


class Board(Stage):
    """A stage that can be waited for, whatever the storage."""

    def __init__(self) -> None:
        super().__init__()
        self._news = anyio.Event()

    async def act(self, name: str, key: str = "") -> str:
        """Do what a body does, and let those know who wait for it."""
        self._tell()
        try:
            return await super().act(name, key)
        finally:
            self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened on the stage."""
        with anyio.fail_after(PATIENCE):
            while not happened():
                await self._news.wait()

    def acted(self, word: str) -> list[int]:
        """List the rows of which something was done, such as `refund`, in order."""
        return [int(name.split()[1]) for name in self.log if name.split()[0] == word and " " in name]


class Hiding(Forward):
    """A storage that has lost the record of one element: a cell of a space."""

    lost: tuple[str, int] | None = None

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """Read all but that."""
        found = await self.inner.space(run_id, space, start, count)
        if found is not None and self.lost is not None and self.lost[0] == space:
            found.cells.pop(self.lost[1], None)
        return found


class Charge(Reactor[str]):
    """An element: one step, with an undo and a compensate."""

    row: int

    @step
    async def charge(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"charge {self.row}")

    @charge.undo
    async def refund(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"refund {self.row}")

    @charge.compensate
    async def void(self, error: StepError, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"void {self.row}")


class Framed(Reactor[Any]):
    """Steps before and after a map; a subclass adds that, as `charges`."""

    rows: list[int]

    @step
    async def prepare(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "prepare")

    @prepare.undo
    async def unprepare(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "unprepare")


class Billing(Framed):
    """A fan-out between two steps."""

    charges = fan_out(Charge, over="rows", after="prepare")

    @step
    async def total(self, charges: Results[str], ctx: Stagehand) -> int:
        """Count."""
        await act(ctx, "total")
        return len(await charges.all())

    @total.undo
    async def untotal(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "untotal")

    @step(after=total)
    async def last(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "last")

    returns = total


class Order(Billing):
    """The same, one after the other."""

    charges = map_each(Charge, over="rows", after="prepare")


class Lenient(Billing):
    """The same, where an element that fails leaves the others alone."""

    charges = fan_out(Charge, over="rows", after="prepare", atomic=False)


class TwoSteps(Charge):
    """An element of two steps."""

    @step
    async def send(self, charge: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"send {self.row}")

    @send.undo
    async def recall(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"recall {self.row}")

    returns = send


class Shipping(Billing):
    """A fan-out of elements of two steps."""

    charges = fan_out(TwoSteps, over="rows", after="prepare", batch_size=3)


def rows(count: int) -> dict[str, Any]:
    """Make inputs of so many rows."""
    return {"rows": list(range(count))}
