"""Versions of one reactor, and a run of the first that was interrupted."""

from rewound import Reactor, step
from tests.runtime.nodes import Net
from tests.runtime.plays import Stagehand, act


class Old(Reactor[str], name="Shop"):
    """The version that started the run."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @step
    async def b(self, a: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "b")


class Grown(Reactor[str], name="Shop", version=2):
    """A version with one more input and one more step."""

    item: str = "book"
    gift: bool = False

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @step
    async def b(self, a: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "b")

    @step
    async def c(self, b: str, ctx: Stagehand) -> str:
        """Act."""
        await act(ctx, f"c, gift: {self.gift}")
        return "grown"


class Retyped(Reactor[str], name="Shop", version=3):
    """A version whose first step returns something else."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> int:
        """Act."""
        return len(await act(ctx, "a"))

    @step
    async def b(self, a: int, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"b {a}")


class Shrunk(Reactor[str], name="Shop", version=4):
    """A version without the step that was in flight."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")


class Reordered(Reactor[str], name="Shop", version=5):
    """A version whose step that was in flight needs one that did not exist."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @step
    async def z(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "z")

    @step
    async def b(self, a: str, z: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "b")


class Demanding(Old, name="Shop", version=6):
    """A version with a new input that has no default."""

    price: int


async def interrupted(net: Net) -> str:
    """Leave a run of the old version with `b` in flight, and its node dead."""
    first = await net.peer(Old)
    net.stage.close("b")
    run = await first.runtime.spawn(Old())
    await net.settle()
    await first.kill()
    net.stage.open("b")
    return run.id
