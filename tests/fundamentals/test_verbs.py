"""What a person can do to a run: undo, cancel, retry; and see what happened."""

import anyio
import pytest

from rewound import Cancelled, Context, Reactor, RunCancelled, Runtime, WrongStatus, step

pytestmark = pytest.mark.anyio


class Book(Reactor[str]):
    """A booking that waits for its confirmation."""

    @step
    async def reserve(self, ctx: Context) -> str:
        """Reserve a seat."""
        ctx.state["log"].append("reserve")
        return "seat 1"

    @reserve.undo
    async def release(self, reserve: str, ctx: Context) -> None:
        """Release the seat."""
        ctx.state["log"].append(f"release {reserve}")

    @step
    async def confirm(self, reserve: str, ctx: Context) -> str:
        """Wait for the gate."""
        await ctx.state["gate"].wait()
        return f"confirmed {reserve}"


class Once(Reactor[str]):
    """A run that fails the first time."""

    @step
    async def try_it(self, ctx: Context) -> str:
        """Fail if nobody has tried before."""
        ctx.state["log"].append(ctx.idempotency_key)
        if len(ctx.state["log"]) == 1:
            raise ConnectionError("down")
        return "up"


@pytest.fixture
def gate(anyio_backend: object) -> anyio.Event:
    """Return what `confirm` waits for."""
    return anyio.Event()


async def test_undo(url: str, log: list[str], gate: anyio.Event) -> None:
    """`undo` takes back a run that has completed."""
    gate.set()
    async with Runtime(url, state={"log": log, "gate": gate}) as runtime:
        run = await runtime.spawn(Book())
        assert await run.result() == "confirmed seat 1"
        await runtime.undo(run.id, reason="changed my mind")
        assert await run.outcome() == Cancelled("changed my mind", undone=True)
    assert log == ["reserve", "release seat 1"]


async def test_cancel(url: str, log: list[str], gate: anyio.Event) -> None:
    """`cancel` stops a run and undoes nothing."""
    async with Runtime(url, state={"log": log, "gate": gate}) as runtime:
        run = await runtime.spawn(Book())
        await run.step(Book.reserve)
        await run.cancel(reason="closing time")
        with pytest.raises(RunCancelled, match="closing time"):
            await run.result()
    assert log == ["reserve"]


async def test_undo_after_cancel(url: str, log: list[str], gate: anyio.Event) -> None:
    """What was cancelled can still be undone."""
    async with Runtime(url, state={"log": log, "gate": gate}) as runtime:
        run = await runtime.spawn(Book())
        await run.step(Book.reserve)
        await run.cancel()
        await run.outcome()
        await run.undo()
        assert await run.outcome() == Cancelled("", undone=True)
    assert log == ["reserve", "release seat 1"]


async def test_retry(runtime: Runtime, log: list[str]) -> None:
    """`retry` starts a failed run again from its first step, with new idempotency keys."""
    run = await runtime.spawn(Once())
    await run.outcome()
    await run.retry()
    assert await run.result() == "up"
    assert log[0] != log[1]


async def test_wrong_status(runtime: Runtime) -> None:
    """A verb that the run's status does not allow is refused, and says what is allowed."""
    run = await runtime.spawn(Once())
    await run.outcome()
    with pytest.raises(WrongStatus, match="the run is failed, which allows retry"):
        await run.cancel()


async def test_events(runtime: Runtime) -> None:
    """`events` tells what happened to a run, from its start to its end."""
    run = await runtime.spawn(Once())
    told = [(event.name, event.step) async for event in run.events()]
    assert told == [
        ("run.spawned", None),
        ("step.started", "try_it"),
        ("step.failed", "try_it"),
        ("rollback.opened", None),
        ("run.ended", None),
    ]
