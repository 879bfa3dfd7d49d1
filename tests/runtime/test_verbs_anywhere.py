"""Undo, cancel and retry from a node that does not own the run; waiting there."""

import anyio
import pytest

from rewound import (
    Cancelled,
    RollbackIncomplete,
    RollbackInProgress,
    RunNotFound,
    VerbError,
    WrongStatus,
)
from rewound.runtime.engine.messages import Verb
from rewound.runtime.owners.replies import encode_verb
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
    """O4: a piece of mail that is posted again, before or after it was read, has no second effect."""
    owner = await net.runtime(Chain)
    run = await owner.spawn(Chain())
    await run.result()
    mail = Mail("m1", encode_verb(Verb(net.clock.time(), "undo")), "nobody")
    await net.memory.post(run.id, mail)
    await net.memory.post(run.id, mail)
    await net.advance(LEASE)
    records = await net.records(run.id)
    await net.memory.post(run.id, mail)
    await net.advance(LEASE)
    assert await net.records(run.id) == records
    assert stage.log == ["a", "b", "c", "undo b", "undo a"]


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
