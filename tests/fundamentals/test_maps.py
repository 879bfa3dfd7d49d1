"""Maps: a reactor for each element of something, and all of them taken back if that fails."""

from collections.abc import AsyncIterator

import pytest

from rewound import (
    Cancelled,
    Context,
    Failed,
    Page,
    Reactor,
    Results,
    RollbackFailure,
    RunFailed,
    Runtime,
    element,
    fan_out,
    map_each,
    source,
    step,
    value,
)

pytestmark = pytest.mark.anyio


class Charge(Reactor[str]):
    """Charge one order; order 13 is declined."""

    order: int

    @step
    async def charge(self, ctx: Context) -> str:
        """Charge the card."""
        if self.order == 13:
            raise ValueError("card declined")
        ctx.state["log"].append(f"charge {self.order}")
        return f"receipt {self.order}"

    @charge.undo
    async def refund(self, charge: str, ctx: Context) -> None:
        """Give the money back."""
        ctx.state["log"].append(f"refund {self.order}")


class Billing(Reactor[int]):
    """Charge a list of orders at the same time."""

    orders: list[int]
    charges = fan_out(Charge, over="orders", batch_size=10)

    @charges.collect
    async def count(self, charges: Results[str]) -> int:
        """Count the receipts."""
        return len(await charges.all())


async def test_fan_out(runtime: Runtime, log: list[str]) -> None:
    """An element runs for each item; the collector turns the results into one value."""
    assert await runtime.run(Billing(orders=[1, 2, 3])) == 3
    assert sorted(log) == ["charge 1", "charge 2", "charge 3"]


async def test_one_element_fails(runtime: Runtime, log: list[str]) -> None:
    """All elements are taken back, and the failure says which one it was."""
    with pytest.raises(RunFailed) as raised:
        await runtime.run(Billing(orders=[1, 2, 13]))
    failure = raised.value.failure
    assert (failure.error, failure.message) == ("ValueError", "card declined")
    assert failure.step == "charges[2]/charge"
    assert sorted(log) == ["charge 1", "charge 2", "refund 1", "refund 2"]


class Shipping(Reactor[list[str]]):
    """One after another, and what fails is left out."""

    orders: list[int]
    charges = map_each(Charge, over="orders", atomic=False)

    @charges.collect
    async def listed(self, charges: Results[str]) -> list[str]:
        """List how each order ended."""
        return [
            each.value or f"{each.status}: {each.error.message if each.error else ''}"
            async for each in charges.outcomes()
        ]


async def test_map_each(runtime: Runtime, log: list[str]) -> None:
    """`map_each` runs in order, one at a time; `atomic=False` lets single elements fail."""
    listed = await runtime.run(Shipping(orders=[1, 13, 3]))
    assert listed == ["receipt 1", "failed: card declined", "receipt 3"]
    assert log == ["charge 1", "charge 3"]


class Import(Reactor[int]):
    """Charge what a generator yields."""

    count: int

    @source
    async def rows(self, ctx: Context) -> AsyncIterator[int]:
        """Read the rows; they are stored before their elements start."""
        for number in range(self.count):
            yield 100 + number

    charges = fan_out(Charge, over=rows, batch_size=10)

    @charges.collect
    async def count_all(self, charges: Results[str]) -> int:
        """Count the receipts."""
        return len(charges)


async def test_a_source(runtime: Runtime, log: list[str]) -> None:
    """An async generator feeds the map; nobody needs the list of rows."""
    assert await runtime.run(Import(count=25)) == 25
    assert len(log) == 25


class Resumable(Reactor[int]):
    """The same by pages, so that it can go on after a crash."""

    count: int

    @source
    async def pages(self, cursor: int | None) -> AsyncIterator[Page[int]]:
        """Read pages of ten, from where the cursor says."""
        for start in range(cursor or 0, self.count, 10):
            yield Page([100 + number for number in range(start, min(start + 10, self.count))], start + 10)

    charges = fan_out(Charge, over=pages)

    @charges.collect
    async def count_all(self, charges: Results[str]) -> int:
        """Count the receipts."""
        return len(charges)


async def test_a_resumable_source(runtime: Runtime) -> None:
    """A source that takes a cursor yields pages, each with the cursor that goes on behind it."""
    assert await runtime.run(Resumable(count=25)) == 25


class Rated(Reactor[str]):
    """An element with several inputs."""

    order: int
    rate: int
    currency: str

    @step
    async def show(self) -> str:
        """Show them."""
        return f"{self.order} at {self.rate} {self.currency}"


class Bound(Reactor[list[str]]):
    """A map that says where the inputs of its elements come from."""

    orders: list[int]

    @step
    async def rate_of_the_day(self) -> int:
        """Look it up."""
        return 7

    shown = fan_out(
        Rated,
        over="orders",
        bind={"order": element(), "rate": rate_of_the_day, "currency": value("EUR")},
    )

    @shown.collect
    async def listed(self, shown: Results[str]) -> list[str]:
        """List them."""
        return await shown.all()


async def test_bind(runtime: Runtime) -> None:
    """Inputs of elements are the element, results of steps, inputs, and plain values."""
    assert await runtime.run(Bound(orders=[1, 2])) == ["1 at 7 EUR", "2 at 7 EUR"]


async def test_undo(runtime: Runtime, log: list[str]) -> None:
    """A completed run is undone by hand: every element is taken back."""
    run = await runtime.spawn(Billing(orders=[1, 2]))
    await run.result()
    await run.undo("a mistake")
    assert await run.outcome() == Cancelled("a mistake", undone=True)
    assert sorted(log[2:]) == ["refund 1", "refund 2"]


async def test_progress(runtime: Runtime) -> None:
    """`run.maps()` says how far each map has come, forward and back."""
    run = await runtime.spawn(Billing(orders=[1, 2, 13]))
    await run.outcome()
    progress = (await run.maps())["charges"]
    assert (progress.total, progress.started, progress.settled, progress.failed) == (3, 3, 3, 1)
    assert progress.rollback is not None
    assert (progress.rollback.total, progress.rollback.outstanding) == (3, 0)


class Careless(Billing):
    """A billing that fails in the end, and whose refunds may."""

    charges = fan_out(Charge, over="orders")

    @step(after="count")
    async def close(self, ctx: Context) -> None:
        """Fail."""
        raise RuntimeError("books are closed")

    returns = "count"


class Stubborn(Charge):
    """A charge that cannot be refunded."""

    @Charge.charge.undo
    async def refund(self, charge: str, ctx: Context) -> None:
        """Fail."""
        raise RuntimeError("no refunds")


class Strict(Careless):
    """A map of those."""

    charges = fan_out(Stubborn, over="orders")


async def test_a_refund_fails(runtime: Runtime) -> None:
    """What could not be undone is listed with its map and index; everything else is undone."""
    outcome = await (await runtime.spawn(Strict(orders=[1]))).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.rollback_failures == [
        RollbackFailure("charge", "undo", "RuntimeError", "no refunds", "charges", 0)
    ]


class Bulk(Reactor[None]):
    """A map that is taken back in one call."""

    orders: list[int]
    charges = fan_out(Charge, over="orders")

    @charges.undo_all
    async def refund_all(self, charges: Results[str], ctx: Context) -> None:
        """Refund every receipt."""
        ctx.state["log"].append(f"refund all {len(await charges.all())}")

    @step(after=charges)
    async def close(self) -> None:
        """Fail."""
        raise RuntimeError("books are closed")


async def test_undo_all(runtime: Runtime, log: list[str]) -> None:
    """`undo_all` replaces the undos of the elements by one call."""
    await (await runtime.spawn(Bulk(orders=[1, 2]))).outcome()
    assert sorted(log) == ["charge 1", "charge 2", "refund all 2"]
