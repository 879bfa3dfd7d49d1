"""How much goes on at a time; and that all of it ends."""

import gc

import anyio
import pytest

from rewound import Fatal, Reactor, Retry, RollbackFailure, Runtime, StorageError, step
from rewound.storage.faults import Fault
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Fork, Solo, Stagehand, act

pytestmark = pytest.mark.anyio


async def test_concurrency_bounds_bodies(net: Net, stage: Stage) -> None:
    """Architecture 2: never more than `concurrency` bodies are in flight over all runs, and all end."""
    runtime = await net.runtime(Fork, concurrency=2)
    stage.close("a")
    runs = [await runtime.spawn(Fork()) for _ in range(5)]
    await net.settle()
    assert stage.running["a"] == 2
    stage.open("a")
    for run in runs:
        assert await run.result() == "join"
    assert stage.most == 2


async def test_handlers_count_as_bodies(net: Net, stage: Stage) -> None:
    """Architecture 2: undos and compensates take a slot, too."""
    runtime = await net.runtime(Fork, concurrency=1)
    stage.errors["join"] = RuntimeError("no")
    runs = [await runtime.spawn(Fork()) for _ in range(3)]
    for run in runs:
        await run.outcome()
    assert stage.most == 1


async def test_a_spawn_without_a_free_slot(net: Net, stage: Stage) -> None:
    """Architecture 5.2: a run that gets no slot at first starts as soon as one is free."""
    runtime = await net.runtime(Solo, concurrency=1)
    stage.close("a")
    first = await runtime.spawn(Solo())
    second = await runtime.spawn(Solo())
    await net.settle()
    assert stage.times("a") == 1
    stage.open("a")
    assert (await first.result(), await second.result()) == ("a", "a")


async def test_max_owners_bounds_live_runs(net: Net, stage: Stage) -> None:
    """Architecture 2: beyond `max_owners` live runs `spawn` waits."""
    runtime = await net.runtime(Solo, max_owners=2)
    stage.close("a")
    spawned: list[int] = []

    async def spawn(number: int) -> None:
        await runtime.spawn(Solo())
        spawned.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(spawn, number)
        await net.settle()
        assert len(spawned) == 2
        stage.open("a")
    assert stage.times("a") == 3


async def test_takeover_pauses_at_max_owners(net: Net, stage: Stage) -> None:
    """Architecture 2: a node that is full takes over no more runs, until it has room."""
    first = await net.peer(Solo)
    stage.close("a")
    for _ in range(3):
        await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    peer = await net.peer(Solo, max_owners=2)
    await net.advance(2 * LEASE)
    assert stage.running["a"] == 2
    stage.open("a")
    await net.advance(LEASE)
    assert [each async for each in peer.runtime.runs(status="running")] == []


class Waiting(Reactor[str]):
    """A step that waits for its next attempt."""

    @step(retry=Retry(attempts=2, delay=5, jitter=0))
    async def a(self, ctx: Stagehand) -> str:
        """Act; the first attempt fails."""
        await act(ctx, "waiting")
        if ctx.attempt == 1:
            raise ConnectionError
        return "done"


async def test_waiting_for_a_retry_holds_no_slot(net: Net, stage: Stage) -> None:
    """Retry: between two attempts others may run."""
    runtime = await net.runtime(Waiting, Solo, concurrency=1)
    waiting = await runtime.spawn(Waiting())
    await net.settle()
    assert await runtime.run(Solo()) == "a"
    await net.advance(6)
    assert await waiting.result() == "done"


async def test_a_body_that_waits_for_a_slot_can_be_cut(net: Net, stage: Stage) -> None:
    """Architecture 2: an owner is always ready to hear an undo, also while its body waits for a slot."""
    first = await net.peer(Chain)
    stage.close("b")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.kill()
    peer = await net.peer(Solo, Chain, concurrency=1)
    stage.close("a")
    await peer.runtime.spawn(Solo())
    await net.advance(2 * LEASE)
    await peer.runtime.cancel(run.id)
    await net.settle()
    assert await net.status(run.id) == "cancelled"
    assert stage.times("b") == 1


async def test_slots_come_back_when_an_append_fails(net: Net, stage: Stage) -> None:
    """Lesson 10: a storage failure loses no slot: the run goes on, and others after it."""
    runtime = await net.runtime(Chain, concurrency=1, plan=[Fault("fail", at=1, method="append")])
    run = await runtime.spawn(Chain())
    await net.advance(LEASE)
    assert await run.result(timeout=1) == "c"
    assert await runtime.run(Chain()) == "c"


async def test_owner_slots_come_back_when_a_spawn_fails(net: Net) -> None:
    """Lesson 10: a spawn that failed holds no place."""
    runtime = await net.runtime(Solo, max_owners=1, plan=[Fault("fail", at=1, method="create")])
    with pytest.raises(StorageError):
        await runtime.spawn(Solo())
    assert await runtime.run(Solo()) == "a"


async def test_a_cancelled_spawn_waits_no_more(net: Net, stage: Stage) -> None:
    """Lesson 10: a caller that gave up waiting for room takes none."""
    runtime = await net.runtime(Solo, max_owners=1)
    stage.close("a")
    await runtime.spawn(Solo())
    async with net.background() as tasks:
        tasks.start_soon(runtime.spawn, Solo())
        await net.settle()
    stage.open("a")
    await net.settle()
    assert await runtime.run(Solo()) == "a"
    assert stage.times("a") == 2


@pytest.mark.slow
async def test_a_thousand_runs_that_nobody_holds(url: str) -> None:
    """Lesson 39: 1,000 spawns whose handles are dropped, with `gc.collect()` in a loop, all finish."""
    stage = Stage()
    async with Runtime(url, reactors=[Solo], state={"stage": stage}, concurrency=100) as runtime:
        for number in range(1000):
            await runtime.spawn(Solo())
            if number % 50 == 0:
                gc.collect()
    assert stage.times("a") == 1000


class Hopeless(Reactor[None]):
    """A step and an undo that know better than to try again."""

    @step
    async def a(self) -> None:
        """Succeed."""

    @a.undo(retry=5)
    async def undo_a(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo a")
        raise Fatal("never")

    @step(after=a, retry=5)
    async def b(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "b")
        raise Fatal("never")


async def test_fatal_makes_no_further_attempt(net: Net, stage: Stage) -> None:
    """`Fatal` ends the attempts of a step and of an undo."""
    runtime = await net.runtime(Hopeless)
    outcome = await (await runtime.spawn(Hopeless())).outcome()
    assert outcome.rollback_failures == [RollbackFailure("a", "undo", "Fatal", "never")]
    assert stage.log == ["b", "undo a"]
