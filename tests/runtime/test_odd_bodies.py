"""Bodies that raise or return what nobody expects."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from rewound import Completed, Failed, Halt, Halted, Reactor, step
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Solo, Stagehand, act

pytestmark = pytest.mark.anyio


class TwoArgumentsError(Exception):
    """An exception that cannot be copied: it wants two arguments."""

    def __init__(self, one: str, two: str) -> None:
        self.one, self.two, self.lock = one, two, threading.Lock()
        super().__init__(f"{one} and {two}")


class MuteError(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Worst(BaseException):
    """An exception that is no `Exception`."""


@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (TwoArgumentsError("a", "b"), "TwoArgumentsError", "a and b"),
        (MuteError(), "MuteError", "<MuteError cannot be printed: its __str__ raised RuntimeError>"),
        (Worst("all is lost"), "Worst", "all is lost"),
        (ExceptionGroup("several", [ValueError("x")]), "ExceptionGroup", "several (1 sub-exception)"),
        (StopIteration("next"), "RuntimeError", "coroutine raised StopIteration"),
    ],
)
async def test_whatever_is_raised_is_a_failure(
    net: Net, stage: Stage, error: BaseException, name: str, message: str
) -> None:
    """S8, lessons 13 and 23: any exception fails its step, with its class name and a readable message."""
    runtime = await net.runtime(Solo)
    stage.errors["a"] = error
    outcome = await (await runtime.spawn(Solo())).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.message) == (name, message)
    assert stage.log == ["a", "compensate a"]


class Deep(Reactor[int]):
    """A step that calls itself."""

    @step
    async def a(self) -> int:
        """Go down."""
        return self.down(1)

    def down(self, level: int) -> int:
        """Go further down."""
        return self.down(level + 1)


async def test_deep_recursion_has_a_bounded_traceback(net: Net) -> None:
    """Lesson 24: a recursion error stores at most 100 frames."""
    runtime = await net.runtime(Deep)
    outcome = await (await runtime.spawn(Deep())).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "RecursionError"
    assert 0 < outcome.traceback.count('  File "') <= 100


class Cancels(Reactor[str]):
    """A step that raises a cancellation in some way of its own."""

    way: str

    @step
    async def a(self) -> str:
        """Do it."""
        await WAYS[self.way]()
        return "back"

    @a.compensate
    async def compensate_a(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate a")


async def raise_it() -> None:
    """Raise a bare cancellation."""
    raise asyncio.CancelledError


async def await_a_cancelled_future() -> None:
    """Await what was cancelled elsewhere."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def cancel_the_own_task() -> None:
    """Cancel the task that runs the body."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


WAYS: dict[str, Callable[[], Any]] = {
    "raise": raise_it,
    "future": await_a_cancelled_future,
    "task": cancel_the_own_task,
}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_cancellation_of_user_code_is_a_failure(net: Net, stage: Stage, way: str) -> None:
    """S8, architecture 2: a cancellation that the runtime did not ask for is a failure of the step."""
    runtime = await net.runtime(Cancels, Patient)
    outcome = await (await runtime.spawn(Cancels(way=way))).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "CancelledError"
    assert stage.log == ["compensate a"]
    assert await runtime.run(Patient()) == "fine"


class Patient(Reactor[str]):
    """A step whose own task was cancelled behind its back, and who returned at once."""

    @step
    async def a(self) -> str:
        """Cancel the own task and return before that is noticed."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "fine"

    @step
    async def b(self, a: str) -> str:
        """Come after it."""
        await asyncio.sleep(0)
        return a


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_comes_too_late(net: Net) -> None:
    """S8: a body that returned has succeeded; what it did to its task harms neither run nor node."""
    runtime = await net.runtime(Patient)
    assert await (await runtime.spawn(Patient())).outcome() == Completed("fine")


class Grouped(Reactor[str]):
    """A step that halts within a task group of its own."""

    @step
    async def a(self) -> str:
        """Halt in a child task."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.halt)
        return "never"

    async def halt(self) -> None:
        """Halt."""
        raise Halt("enough")


async def test_halt_from_a_task_group(net: Net) -> None:
    """S6: a halt is one, also when a task group of the body has wrapped it."""
    runtime = await net.runtime(Grouped)
    assert await (await runtime.spawn(Grouped())).outcome() == Halted("enough", "a")


class Swallows(Reactor[str], timeout=5):
    """A step that swallows its cancellation and returns something."""

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Swallow."""
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            ctx.state["log"].append("swallowed")
        return "a value"

    @a.undo
    async def undo_a(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo a")


async def test_a_body_that_succeeds_although_it_was_cut(net: Net, stage: Stage) -> None:
    """V1: a body that returns a value when it is cut has succeeded, and is undone."""
    runtime = await net.runtime(Swallows)
    run = await runtime.spawn(Swallows())
    await net.settle()
    await run.undo()
    await run.outcome()
    assert stage.log == ["swallowed", "undo a"]


class Guarded(Reactor[str]):
    """A step that catches every exception."""

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act, and hide what goes wrong."""
        try:
            return await act(ctx, "a")
        except Exception:  # noqa: BLE001 - that is the point
            return "hidden"


async def test_except_exception_hides_no_lost_claim(net: Net, stage: Stage) -> None:
    """S11: a body's `except Exception` cannot turn a lost claim into a recorded success."""
    peer = await net.peer(Guarded)
    stage.close("a")
    run = await peer.runtime.spawn(Guarded())
    await net.settle()
    await net.memory.leave(peer.node)
    await net.advance(LEASE)
    stage.open("a")
    assert await run.result() == "a"
    assert stage.times("a") == 2


async def test_except_exception_hides_no_halt(net: Net, stage: Stage) -> None:
    """Architecture 2: control signals derive from `BaseException`."""
    runtime = await net.runtime(Guarded)
    stage.errors["a"] = Halt("stop")
    assert await (await runtime.spawn(Guarded())).outcome() == Halted("stop", "a")
