"""Composed children: a reactor as one step of another one."""

import pytest

from rewound import Context, Failed, Reactor, Results, Runtime, compose, fan_out, step, value

pytestmark = pytest.mark.anyio


class Pay(Reactor[str]):
    """A child of two steps."""

    amount: int
    currency: str = "EUR"

    @step
    async def authorise(self, ctx: Context) -> str:
        """Ask the bank."""
        ctx.state["log"].append("authorise")
        return f"{self.amount} {self.currency}"

    @authorise.undo
    async def revoke(self, ctx: Context) -> None:
        """Tell the bank."""
        ctx.state["log"].append("revoke")

    @step
    async def capture(self, authorise: str, ctx: Context) -> str:
        """Take the money; more than 100 is refused."""
        if self.amount > 100:
            raise ValueError("too much")
        ctx.state["log"].append("capture")
        return authorise

    @capture.undo
    async def refund(self, ctx: Context) -> None:
        """Give it back."""
        ctx.state["log"].append("refund")


class Order(Reactor[str]):
    """A parent: a step, the child, a step."""

    price: int
    ship_to: str = "Lyon"

    @step
    async def reserve(self, ctx: Context) -> int:
        """Reserve stock."""
        ctx.state["log"].append("reserve")
        return self.price

    @reserve.undo
    async def release(self, ctx: Context) -> None:
        """Release it."""
        ctx.state["log"].append("release")

    paid = compose(Pay, bind={"amount": reserve})

    @step
    async def ship(self, paid: str, ctx: Context) -> str:
        """Ship; nothing goes to the moon."""
        if self.ship_to == "the moon":
            raise ValueError("too far")
        ctx.state["log"].append("ship")
        return f"shipped, paid {paid}"


async def test_a_child_runs_inside_its_parent(runtime: Runtime, log: list[str]) -> None:
    """The child's result is that of the parent's step; all of it is one run."""
    assert await runtime.run(Order(price=5)) == "shipped, paid 5 EUR"
    assert log == ["reserve", "authorise", "capture", "ship"]


async def test_a_step_of_the_child_fails(runtime: Runtime, log: list[str]) -> None:
    """The child has taken itself back before its parent does; the failure names the way to the step."""
    outcome = await (await runtime.spawn(Order(price=500))).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.step, outcome.message) == ("paid/capture", "too much")
    assert log == ["reserve", "authorise", "revoke", "release"]


async def test_a_step_after_the_child_fails(runtime: Runtime, log: list[str]) -> None:
    """The child is undone as a whole, in its place, newest step first."""
    await (await runtime.spawn(Order(price=5, ship_to="the moon"))).outcome()
    assert log == ["reserve", "authorise", "capture", "refund", "revoke", "release"]


async def test_a_step_of_a_child_by_name(runtime: Runtime) -> None:
    """`run.step` waits for a child like for any step."""
    run = await runtime.spawn(Order(price=5))
    assert await run.step(Order.paid) == "5 EUR"


class Batch(Reactor[int]):
    """A child with a map."""

    amounts: list[int]
    payments = fan_out(Pay, over="amounts", bind={"currency": value("CHF")})

    @payments.collect
    async def count(self, payments: Results[str]) -> int:
        """Count."""
        return len(payments)


class Month(Reactor[int]):
    """Maps and children inside each other: each element of this map is a child with a map."""

    weeks: list[list[int]]
    batches = fan_out(Batch, over="weeks")

    @batches.collect
    async def total(self, batches: Results[int]) -> int:
        """Add up."""
        return sum([count async for count in batches])


async def test_maps_in_maps(runtime: Runtime) -> None:
    """Children and maps nest as you like."""
    assert await runtime.run(Month(weeks=[[1, 2], [3]])) == 3


async def test_a_failure_deep_inside(runtime: Runtime, log: list[str]) -> None:
    """It rolls back through every level, and says where it was."""
    outcome = await (await runtime.spawn(Month(weeks=[[1], [500]]))).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.step == "batches[1]/payments[0]/capture"
    assert log.count("authorise") == log.count("revoke")
    assert log.count("capture") == log.count("refund")
