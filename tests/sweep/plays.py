"""The reactors that the sweeps play: their bodies write down that they ran, and fail where told to."""

from typing import Any

from rewound import Context, Reactor, StepError, step
from rewound.runtime.declare import compose, element, fan_out, map_each
from rewound.runtime.results import Results
from rewound.testing import Ledger

__all__ = ["Family", "Inline", "Item", "Kept", "Listed", "Nested", "Plain", "Root", "act"]

Stage = Context[dict[str, Any]]


async def act(ctx: Stage, *, fail: bool = False) -> None:
    """Write down that a body or handler runs; fail if told to."""
    ledger: Ledger = ctx.state["ledger"]
    async with ledger.running(ctx):
        if fail:
            raise RuntimeError(f"{ctx.step} broke")


class Item(Reactor[int]):
    """An element: two steps, each with an undo. `two` fails on `bad`, the undo of `one` on `bad_undo`."""

    number: int
    bad: int = -1
    bad_undo: int = -1

    @step
    async def one(self, ctx: Stage) -> int:
        """Act."""
        await act(ctx)
        return self.number

    @one.compensate
    async def clean_one(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    @one.undo
    async def not_one(self, ctx: Stage) -> None:
        """Act; fail on `bad_undo`."""
        await act(ctx, fail=self.number == self.bad_undo)

    @step
    async def two(self, one: int, ctx: Stage) -> int:
        """Act; fail on `bad`."""
        await act(ctx, fail=one == self.bad)
        return 10 * one

    @two.compensate
    async def clean_two(self, error: StepError, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    @two.undo
    async def not_two(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)


BIND: dict[str, Any] = {"number": element(), "bad": "bad", "bad_undo": "bad_undo"}


class Rows(Reactor[Any]):
    """Inputs of a map, and the step that lists its rows. Not run by itself."""

    count: int = 0
    bad: int = -1
    bad_undo: int = -1
    fail: bool = False

    @step
    async def rows(self, ctx: Stage) -> list[int]:
        """List the numbers."""
        await act(ctx)
        return list(range(self.count))

    @rows.undo
    async def not_rows(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)


class Listed(Rows):
    """A step, a map over its result, five at a time, and a step after the map that may fail."""

    items = fan_out(Item, over=Rows.rows, batch_size=5, bind=BIND)

    @items.collect
    async def numbers(self, items: Results[int]) -> list[int]:
        """Read all results."""
        return await items.all()

    @step(after=numbers)
    async def last(self, ctx: Stage) -> None:
        """Act; fail if told to."""
        await act(ctx, fail=self.fail)

    @last.undo
    async def not_last(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    returns = numbers


class Inline(Rows):
    """The same with elements one after another."""

    items = map_each(Item, over=Rows.rows, bind=BIND)

    @step
    async def last(self, items: Results[int], ctx: Stage) -> list[int]:
        """Act; fail if told to."""
        await act(ctx, fail=self.fail)
        return await items.all()


class Kept(Rows):
    """A map that keeps what succeeds."""

    items = fan_out(Item, over=Rows.rows, batch_size=5, atomic=False, bind=BIND)

    @step
    async def told(self, items: Results[int], ctx: Stage) -> list[str]:
        """Tell how each element ended."""
        await act(ctx)
        return [f"{each.status} {each.value}" async for each in items.outcomes()]


class Group(Rows):
    """An element that has a map of its own."""

    number: int = 0

    items = fan_out(Item, over=Rows.rows, batch_size=2, bind=BIND)

    @step
    async def total(self, items: Results[int], ctx: Stage) -> int:
        """Add up."""
        await act(ctx)
        return sum(await items.all())

    @total.undo
    async def not_total(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    returns = total


class Nested(Rows):
    """A map whose elements have maps."""

    groups = fan_out(
        Group,
        over=Rows.rows,
        batch_size=2,
        bind={"number": element(), "count": "count", "bad": "bad", "bad_undo": "bad_undo"},
    )

    @step
    async def last(self, groups: Results[int], ctx: Stage) -> list[int]:
        """Act; fail if told to."""
        await act(ctx, fail=self.fail)
        return await groups.all()


class Child(Rows):
    """A child with a map between two steps, one element at a time."""

    items = fan_out(Item, over=Rows.rows, batch_size=1, bind=BIND)

    @step
    async def summed(self, items: Results[int], ctx: Stage) -> int:
        """Add up."""
        await act(ctx)
        return sum(await items.all())

    @summed.undo
    async def not_summed(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    returns = summed


PASS_ON: dict[str, Any] = {"count": "count", "bad": "bad", "bad_undo": "bad_undo"}


class Middle(Reactor[int]):
    """A child that composes the child with the map."""

    count: int
    bad: int = -1
    bad_undo: int = -1

    inner = compose(Child, bind=PASS_ON)


class Around(Reactor[Any]):
    """What a root has before and after its child. Not run by itself."""

    count: int = 0
    bad: int = -1
    bad_undo: int = -1
    fail: bool = False

    @step
    async def first(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    @first.undo
    async def not_first(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)


class Root(Around):
    """A root with a child with a map."""

    child = compose(Child, after=Around.first, bind=PASS_ON)

    @step
    async def last(self, child: int, ctx: Stage) -> int:
        """Act; fail if told to."""
        await act(ctx, fail=self.fail)
        return child


class Deep(Around):
    """The same, two levels deep."""

    child = compose(Middle, after=Around.first, bind=PASS_ON)

    @step
    async def last(self, child: int, ctx: Stage) -> int:
        """Act; fail if told to."""
        await act(ctx, fail=self.fail)
        return child


class Plain(Reactor[int]):
    """A child of two steps, the second of which may fail."""

    bad: bool = False

    @step
    async def c1(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    @c1.undo
    async def not_c1(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    @step(after=c1)
    async def c2(self, ctx: Stage) -> int:
        """Act; fail if told to."""
        await act(ctx, fail=self.bad)
        return 2

    @c2.compensate
    async def clean_c2(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    @c2.undo
    async def not_c2(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)

    returns = c2


class Family(Around):
    """Scenario 13: a step, a child, a step."""

    bad_child: bool = False

    child = compose(Plain, after=Around.first, bind={"bad": "bad_child"})

    @step
    async def last(self, child: int, ctx: Stage) -> int:
        """Act; fail if told to, or while the world is broken."""
        await act(ctx, fail=self.fail or bool(ctx.state["ledger"].world.get("broken")))
        return child

    @last.undo
    async def not_last(self, ctx: Stage) -> None:
        """Act."""
        await act(ctx)
