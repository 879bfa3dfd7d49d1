"""Undo, cancel and retry from a node that does not own the run; waiting there."""

import anyio
import pytest

from rewound import (
    Cancelled,
    Completed,
    Reactor,
    RollbackIncomplete,
    RollbackInProgress,
    RunCancelled,
    RunNotFound,
    RuntimeClosed,
    VerbError,
    WrongStatus,
    step,
)
from rewound.storage.faults import Fault
from rewound.storage.protocol import Mail
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Solo

pytestmark = pytest.mark.anyio


async def test_undo_from_another_node(net: Net, stage: Stage) -> None:
    """Architecture 4: mail reaches the owner, wherever it is, and its reply the sender."""
    owner, other = await net.runtime(Chain), await net.runtime(Chain)
    stage.close("b")
    run = await owner.spawn(Chain())
    await run.step(Chain.a)
    await other.undo(run.id, reason="from afar")
    assert await run.outcome() == Cancelled("from afar", undone=True)
    assert stage.log == ["a", "b", "compensate b", "undo a"]


async def test_refusals_keep_their_class(net: Net, stage: Stage) -> None:
    """Architecture 4: the owner's refusal reaches a caller on any node, by class and message."""
    owner, other = await net.runtime(Chain), await net.runtime(Chain)
    stage.close("undo a")
    stage.errors |= {"b": RuntimeError("no"), "undo a": RuntimeError("no")}
    run = await owner.spawn(Chain())
    await net.settle()
    with pytest.raises(RollbackInProgress, match="undo was refused: the run is rolling back"):
        await other.undo(run.id)
    stage.open("undo a")
    await run.outcome()
    with pytest.raises(RollbackIncomplete):
        await other.retry(run.id)
    with pytest.raises(WrongStatus, match="the run is failed, which allows undo"):
        await other.cancel(run.id)


async def test_undo_of_a_run_that_nobody_owns(net: Net, stage: Stage) -> None:
    """A run that has ended gets an owner for the undo, on a node that can run it."""
    owner, other = await net.runtime(Chain), await net.runtime(Chain)
    run = await owner.spawn(Chain())
    await run.result()
    await other.undo(run.id)
    assert await run.outcome() == Cancelled("", undone=True)
    assert stage.log[3:] == ["undo b", "undo a"]


async def test_a_node_without_the_reactor_may_ask(net: Net, stage: Stage) -> None:
    """A verb may come from a node that could not run the reactor."""
    owner, other = await net.runtime(Chain), await net.runtime(Solo)
    run = await owner.spawn(Chain())
    await run.result()
    async with net.background() as tasks:
        tasks.start_soon(other.undo, run.id)
        await net.advance(LEASE)
    assert await run.outcome() == Cancelled("", undone=True)


async def test_undo_of_a_dead_nodes_run(net: Net, stage: Stage) -> None:
    """Mail to a dead owner is read by the next one."""
    first, other = await net.peer(Chain), await net.runtime(Chain)
    stage.close("b")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.kill()
    async with net.background() as tasks:
        tasks.start_soon(other.undo, run.id)
        await net.advance(2 * LEASE)
        assert await net.status(run.id) == "cancelled"
    assert stage.log == ["a", "b", "compensate b", "undo a"]


async def test_two_undos_at_once(net: Net, stage: Stage) -> None:
    """O4, scenario 10: of two undos from two nodes one is accepted, and there is one effect."""
    nodes = [await net.runtime(Chain) for _ in range(3)]
    run = await nodes[0].spawn(Chain())
    await run.result()
    stage.close("undo b")
    refused: list[VerbError] = []

    async def undo(number: int) -> None:
        try:
            await nodes[number].undo(run.id)
        except VerbError as error:
            refused.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(undo, 1)
        tasks.start_soon(undo, 2)
    stage.open("undo b")
    await run.outcome()
    assert [type(error) for error in refused] == [RollbackInProgress]
    assert stage.log == ["a", "b", "c", "undo b", "undo a"]


async def test_mail_delivered_twice(net: Net, stage: Stage) -> None:
    """O4: the same piece of mail, posted again, has no second effect."""
    owner, other = await net.runtime(Chain), await net.peer(Chain)
    run = await owner.spawn(Chain())
    await run.result()
    posted: list[Mail] = []
    post = net.memory.post

    async def keep(run_id: str, mail: Mail) -> object:
        posted.append(mail)
        return await post(run_id, mail)

    other.faults.inner.post = keep  # type: ignore[method-assign,assignment] # pyright: ignore
    await other.runtime.undo(run.id)
    await run.outcome()
    records = await net.records(run.id)
    await post(run.id, posted[0])
    await net.advance(LEASE)
    assert await net.records(run.id) == records


async def test_unreadable_mail_is_refused(net: Net) -> None:
    """Mail of another version is answered, not kept for ever, and does not harm the run."""
    runtime = await net.runtime(Solo)
    run = await runtime.spawn(Solo())
    await run.result()
    await net.memory.post(run.id, Mail("m1", b"\xc1", "nobody"))
    await net.advance(LEASE)
    reply = await net.memory.reply("m1")
    assert reply is not None
    assert b"cannot be read by this version" in reply
    assert await run.result() == "a"


async def test_lost_hint_of_mail(net: Net, stage: Stage) -> None:
    """Architecture 4: losing a hint costs delay, never the message."""
    net.lose_hints("mail", "reply")
    owner, other = await net.runtime(Chain), await net.runtime(Chain)
    stage.close("b")
    run = await owner.spawn(Chain())
    await run.step(Chain.a)
    async with net.background() as tasks:
        tasks.start_soon(other.cancel, run.id)
        await net.advance(LEASE / 2 + 1)
        assert await net.status(run.id) == "cancelled"


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


async def test_verb_on_no_run(net: Net) -> None:
    """An id of no run is `RunNotFound`, for every verb."""
    runtime = await net.runtime(Solo)
    for verb in (runtime.undo, runtime.cancel, runtime.retry, runtime.acknowledge):
        with pytest.raises(RunNotFound):
            await verb("nowhere")


async def test_verb_whose_run_is_purged_at_once(net: Net) -> None:
    """A verb that was accepted is no error, though its run has expired by the time its sender looks."""
    net.lose_hints("reply")
    owner, other = await net.runtime(Solo, retention=0), await net.runtime(Solo)
    net.stage.close("a")
    run = await owner.spawn(Solo())
    accepted: list[bool] = []

    async def cancel() -> None:
        await other.cancel(run.id)
        accepted.append(True)

    async with net.background() as tasks:
        tasks.start_soon(cancel)
        await net.advance(LEASE)
    assert accepted == [True]


async def test_acknowledged_failures_expire(net: Net, stage: Stage) -> None:
    """Architecture 4: a run with rollback failures is kept until somebody has acknowledged them."""
    runtime = await net.runtime(Chain, retention=100)
    stage.errors |= {"b": RuntimeError("no"), "undo a": RuntimeError("no")}
    run = await runtime.spawn(Chain())
    await run.outcome()
    await net.advance(200)
    assert await run.status() == "failed"
    await runtime.acknowledge(run.id)
    await net.advance(200)
    with pytest.raises(RunNotFound):
        await run.status()


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
