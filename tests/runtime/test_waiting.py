"""Waiting for a run, here and on other nodes."""

import pytest

from rewound import (
    Completed,
    Reactor,
    RunCancelled,
    RunNotFound,
    RuntimeClosed,
    step,
)
from rewound.storage.faults import Fault
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Solo

pytestmark = pytest.mark.anyio


async def test_lost_hint_of_a_result(net: Net, stage: Stage) -> None:
    """Architecture 4: a waiter on another node polls slowly, in case its hint was lost."""
    net.lose_hints("changed")
    owner, other = await net.runtime(Solo), await net.runtime(Solo)
    stage.close("a")
    run = await owner.spawn(Solo())
    results: list[str] = []

    async def wait() -> None:
        results.append(await (await other.get(run.id, Solo)).result())

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        stage.open("a")
        await net.settle()
        assert results == []
        await net.advance(LEASE / 4 + 1)
    assert results == ["a"]


async def test_waiters_share_one_watch(net: Net, stage: Stage) -> None:
    """Lesson 30: many waiters on one run ask storage once, and do not poll."""
    owner, other = await net.runtime(Solo), await net.peer(Solo)
    stage.close("a")
    run = await owner.spawn(Solo())
    handle = await other.runtime.get(run.id, Solo)
    results: list[str] = []

    async def wait() -> None:
        results.append(await handle.result())

    async with net.background() as tasks:
        for _ in range(20):
            tasks.start_soon(wait)
        await net.settle()
        asked = other.faults.trace.count("watch")
        stage.open("a")
        await net.settle()
    assert (len(results), asked) == (20, 1)
    assert other.faults.trace.count("unwatch") == 1


async def test_unwatch_that_fails_does_not_lose_the_result(net: Net) -> None:
    """A result that is there is returned, though storage fails afterwards."""
    owner = await net.runtime(Solo)
    run = await owner.spawn(Solo())
    other = await net.runtime(Solo, plan=[Fault("fail", at=1, method="unwatch")])
    assert await (await other.get(run.id, Solo)).result() == "a"


async def test_waiting_ends_when_the_runtime_closes(net: Net, stage: Stage) -> None:
    """Lesson 43: who waits on a runtime that closes is told so, by name; so is who comes later."""
    runtime = await net.runtime(Solo)
    stage.close("a")
    run = await runtime.spawn(Solo())
    told: list[str] = []

    async def wait() -> None:
        with pytest.raises(RuntimeClosed) as raised:
            await run.result()
        told.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        await runtime.close()
        await net.settle()
        assert len(told) == 1
    assert run.id in told[0]
    with pytest.raises(RuntimeClosed):
        await run.outcome()


async def test_events_follow_a_run(net: Net, stage: Stage) -> None:
    """`events` goes on when the run moves to another node, and tells each thing once."""
    first, second = await net.peer(Solo), await net.runtime(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    handle = await second.get(run.id, Solo)
    told: list[str] = []

    async def read() -> None:
        told.extend([event.name async for event in handle.events()])

    async with net.background() as tasks:
        tasks.start_soon(read)
        await net.settle()
        await first.kill()
        stage.open("a")
        await net.advance(2 * LEASE)
    assert told == ["run.spawned", "step.started", "run.recovered", "step.succeeded", "run.ended"]


async def test_events_of_no_run(net: Net) -> None:
    """Events of a run that was purged meanwhile are `RunNotFound`."""
    runtime = await net.runtime(Solo, retention=0)
    run = await runtime.spawn(Solo())
    await net.settle()
    with pytest.raises(RunNotFound):
        assert [event async for event in run.events()] == []


async def test_step_of_a_run_that_is_undone(net: Net, stage: Stage) -> None:
    """`step` raises what `result` would if the run ends without that step."""
    runtime = await net.runtime(Chain)
    stage.close("a")
    run = await runtime.spawn(Chain())
    async with net.background() as tasks:
        tasks.start_soon(run.undo)
        with pytest.raises(RunCancelled):
            await run.step(Chain.b)


async def test_step_of_a_run_that_is_retried(net: Net, stage: Stage) -> None:
    """`step` waits for the step of the run that was retried meanwhile."""
    runtime = await net.runtime(Chain)
    stage.close("undo a", "b")
    stage.errors["b"] = RuntimeError("no")
    run = await runtime.spawn(Chain())
    results: list[str] = []

    async def wait() -> None:
        results.append(await run.step(Chain.b))

    await net.settle()
    stage.open("b")
    await net.settle()
    del stage.errors["b"]
    stage.open("undo a")
    await run.outcome()
    await run.retry()
    await wait()
    assert results == ["b"]
    assert await run.outcome() == Completed("c")


class Nothing(Reactor[None]):
    """A run without a result."""

    @step
    async def a(self) -> None:
        """Do nothing."""


async def test_no_result(net: Net) -> None:
    """The result of a `Reactor[None]` is `None`."""
    runtime = await net.runtime(Nothing)
    run = await runtime.spawn(Nothing())
    assert await run.outcome() == Completed(None)
    assert repr(run) == f"<Run Nothing {run.id}>"


async def test_a_second_waiter_while_the_first_still_asks_for_the_watch(net: Net, stage: Stage) -> None:
    """Lesson 30: who came after the first looked before the watch was there; it is told to look again."""
    owner, other = await net.runtime(Solo), await net.peer(Solo)
    stage.close("a")
    run = await owner.spawn(Solo())
    handle = await other.runtime.get(run.id, Solo)
    other.faults.plan = [Fault("hang", 1, method="watch")]
    results: list[str] = []

    async def wait() -> None:
        results.append(await handle.result())

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        tasks.start_soon(wait)
        await net.settle()
        stage.open("a")
        await net.settle()
        assert results == []
        other.faults.proceed()
        await net.settle()
    assert results == ["a", "a"]
