"""Plain functions, which run in threads; and values that few steps return."""

import threading
from typing import Any

import anyio
import pytest

from rewound import Context, Failed, Reactor, Runtime, Skipped, StepError, step
from tests.runtime.nodes import LEASE, Net

pytestmark = pytest.mark.anyio


def wait_in_thread(ctx: Context) -> str:
    """Tell that it runs, and wait."""
    anyio.from_thread.run_sync(ctx.state["entered"].set)
    ctx.state["leave"].wait(10)
    return "from a thread"


class Threaded(Reactor[str]):
    """Plain functions, which run in threads."""

    @step
    def a(self, ctx: Context) -> str:
        """Wait."""
        return wait_in_thread(ctx)

    @a.undo
    def undo_a(self, a: str, ctx: Context) -> None:
        """Undo in a thread, too."""
        ctx.state["log"].append(f"undo {a}")

    @a.compensate
    def compensate_a(self, error: StepError, ctx: Context) -> None:
        """Compensate in a thread, too."""
        ctx.state["log"].append(f"compensate after {error.type}")


class Hurried(Threaded):
    """The same, with a timeout."""

    @step(timeout=3)
    def a(self, ctx: Context) -> str:
        """Wait."""
        return wait_in_thread(ctx)


async def test_a_body_in_a_thread(net: Net) -> None:
    """A plain function runs in a thread, and so does its undo."""
    entered, leave = anyio.Event(), threading.Event()
    runtime = await net.runtime(Threaded, state={"entered": entered, "leave": leave})
    leave.set()
    run = await runtime.spawn(Threaded())
    assert await run.result() == "from a thread"
    await run.undo()
    await run.outcome()
    assert net.stage.log == ["undo from a thread"]


async def test_the_timeout_of_a_body_in_a_thread(net: Net) -> None:
    """A thread cannot be cancelled: its timeout is recorded when it returns."""
    entered, leave = anyio.Event(), threading.Event()
    runtime = await net.runtime(Hurried, state={"entered": entered, "leave": leave})
    run = await runtime.spawn(Hurried())
    await entered.wait()
    await net.advance(4)
    assert await net.status(run.id) == "running"
    leave.set()
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "TimeoutError"
    assert net.stage.log == ["compensate after TimeoutError"]


async def test_the_late_result_of_a_thread_is_refused(net: Net) -> None:
    """A result that a thread returns after its claim was lost is not recorded."""
    entered, leave = anyio.Event(), threading.Event()
    state = {"entered": entered, "leave": leave}
    peer = await net.peer(Threaded, state=state)
    run = await peer.runtime.spawn(Threaded())
    await entered.wait()
    await net.memory.leave(peer.node)
    await net.advance(LEASE)
    owned = await net.records(run.id)
    leave.set()
    while await net.status(run.id) != "completed":
        await net.advance(1)
    events = [event.name async for event in run.events()]
    assert len(owned) == 2
    assert events[2:] == ["run.recovered", "step.succeeded", "run.ended"]


class Values(Reactor[Any]):
    """A step that returns what the test wants."""

    @step
    async def a(self, ctx: Context) -> Any:
        """Return it."""
        return ctx.state["value"]


@pytest.mark.parametrize("value", [False, 0, "", [], None, float("inf"), 2**63, b"\0", "\U0001f600", {}])
async def test_unusual_results(net: Net, value: object) -> None:
    """Lessons 32 and 37: falsy and unusual values are values."""
    runtime = await net.runtime(Values, state={"value": value})
    assert await runtime.run(Values()) == value


@pytest.mark.parametrize("value", [object(), 2**64, "\ud800", {1: object()}])
async def test_results_that_cannot_be_stored(net: Net, value: object) -> None:
    """Lesson 37: what cannot be stored is refused by name."""
    runtime = await net.runtime(Values, state={"value": value})
    outcome = await (await runtime.spawn(Values())).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "EncodeError"
    assert "Values.a: result" in outcome.message


async def test_skipping_with_a_falsy_value(net: Net) -> None:
    """S7, lesson 32: a skipped step's value may be false."""
    runtime = await net.runtime(Values, state={"value": Skipped(0)})
    assert await runtime.run(Values()) == 0


async def test_runtime_options_are_checked() -> None:
    """Settings: an option that cannot work is refused by name."""
    for options in ({"concurrency": 0}, {"max_recoveries": -1}, {"lease": 0.01}, {"max_owners": True}):
        with pytest.raises(Exception, match=next(iter(options))):
            Runtime(**options)  # pyright: ignore[reportArgumentType]
