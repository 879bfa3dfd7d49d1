"""The reactors that the tests of the runtime perform on a `Stage`."""

from typing import Any

from rewound import Context, Reactor, Retry, StepError, step

Stagehand = Context[dict[str, Any]]


async def act(ctx: Stagehand, name: str) -> str:
    """Act on the stage of the runtime."""
    acted: str = await ctx.state["stage"].act(name, ctx.idempotency_key)
    return acted


class Solo(Reactor[str]):
    """One step, with an undo and a compensate."""

    note: str = ""

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @a.undo
    async def undo_a(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo a")

    @a.compensate
    async def compensate_a(self, error: StepError, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate a")


class Chain(Solo):
    """Three steps, one after the other."""

    @step
    async def b(self, a: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "b")

    @b.undo
    async def undo_b(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo b")

    @b.compensate
    async def compensate_b(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate b")

    @step
    async def c(self, b: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "c")


class Fork(Solo):
    """Three branches behind `a`, and a last step that joins them."""

    @step(after="a")
    async def left(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "left")

    @left.undo
    async def undo_left(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo left")

    @left.compensate
    async def compensate_left(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate left")

    @step(after="a")
    async def middle(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "middle")

    @middle.undo
    async def undo_middle(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo middle")

    @middle.compensate
    async def compensate_middle(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate middle")

    @step(after="a")
    async def right(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "right")

    @right.undo
    async def undo_right(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo right")

    @step
    async def join(self, left: str, middle: str, right: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "join")


class Later(Reactor[str]):
    """A step whose second attempt is an hour away."""

    @step(retry=Retry(attempts=2, delay=3600, max_delay=3600, jitter=0))
    async def a(self, ctx: Stagehand) -> str:
        """Act; the first attempt fails."""
        await act(ctx, "a")
        if ctx.attempt == 1:
            raise ConnectionError
        return "at last"
