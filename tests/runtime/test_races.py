"""What happens between two steps of taking a run over, parking it, or asking for something."""

import pytest
from msgspec import Struct

from rewound import Context, PayloadError, Reactor, RunStuck, RuntimeClosed, StorageError, step
from rewound.runtime.engine.messages import Verb
from rewound.runtime.engine.records import Recovered, encode_record
from rewound.runtime.owners.replies import encode_verb
from rewound.storage.faults import Fault
from rewound.storage.protocol import Claim, Commit, Mail
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Solo
from tests.runtime.plays_versions import Grown, Old, Shrunk, interrupted

pytestmark = pytest.mark.anyio


async def test_an_orphan_that_somebody_takes_meanwhile(net: Net, stage: Stage) -> None:
    """Lesson 8: a run that lost its owner and is looked at twice gets one owner."""
    plan = [Fault("fail", at=1, method="append"), Fault("hang", at=1, method="load")]
    peer = await net.peer(Chain, plan=plan)
    run = await peer.runtime.spawn(Chain())
    await net.advance(LEASE / 2)
    stage.close("a")
    async with net.background() as tasks:
        tasks.start_soon(run.cancel)
        await net.advance(1)
        assert await net.status(run.id) == "cancelled"
        peer.faults.proceed()
    assert peer.services.owners == {}


async def test_an_orphan_without_room(net: Net, stage: Stage) -> None:
    """Architecture 2: a run that lost its owner waits for room like any other."""
    peer = await net.peer(Chain, Solo, max_owners=1, plan=[Fault("fail", at=1, method="append")])
    run = await peer.runtime.spawn(Chain())
    await net.settle()
    stage.close("a")
    await peer.runtime.spawn(Solo())
    await net.advance(LEASE)
    assert len(peer.services.owners) == 1
    stage.open("a")
    await net.advance(LEASE)
    assert await run.result(timeout=1) == "c"


async def test_a_takeover_that_ends_without_a_lease(net: Net) -> None:
    """Architecture 4: a node that was fenced while it examined a run claims nothing for the dead node."""
    old = await net.runtime(Old)
    run = await old.spawn(Old())
    await run.result()
    await net.settle()
    await old.close()
    plan = [Fault("hang", at=number, method="load") for number in range(1, 9)]
    plan += [Fault("fail", at=number, method="join") for number in range(2, 8)]
    peer = await net.peer(Grown, plan=plan)
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.undo, run.id)
        await net.settle()
        await net.memory.leave(peer.node)
        await net.advance(LEASE / 2)
        assert peer.node == ""
        peer.faults.proceed()
        await net.settle()
        assert await net.status(run.id) == "completed"
        await net.advance(2 * LEASE)
        assert await net.status(run.id) == "cancelled"


async def test_a_claim_that_comes_when_the_node_is_dead(net: Net, stage: Stage) -> None:
    """Architecture 4: what was claimed for a node that was fenced meanwhile is claimed anew."""
    plan = [Fault("hang", at=1, when="after", method="claim")]
    plan += [Fault("fail", at=number, method="join") for number in range(2, 8)]
    peer = await net.peer(Chain, plan=plan)
    run = await peer.runtime.spawn(Chain())
    await run.result()
    await net.settle()
    stage.close("undo b")
    async with net.background() as tasks:
        tasks.start_soon(run.undo)
        await net.settle()
        await net.memory.leave(peer.node)
        await net.advance(LEASE / 2)
        peer.faults.proceed()
        await net.advance(2 * LEASE)
        journal = await net.memory.load(run.id, limit=0)
        assert journal is not None
        assert journal.head.node == peer.node
        stage.open("undo b")
        await net.settle()
    assert await net.status(run.id) == "cancelled"
    assert stage.overlaps == []


async def test_a_released_run_that_two_nodes_take(net: Net, stage: Stage) -> None:
    """Lesson 3: a node whose claim is gone by the time it has read the run starts no body."""
    first = await net.peer(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    await net.settle()
    await first.runtime.close()
    slow = await net.peer(Solo, plan=[Fault("hang", at=1, method="load")])
    await net.settle()
    await net.memory.leave(slow.node)
    other = await net.runtime(Solo)
    await net.settle()
    slow.faults.proceed()
    await net.settle()
    assert (stage.times("a"), stage.overlaps) == (2, [])
    stage.open("a")
    assert await (await other.get(run.id, Solo)).result(timeout=1) == "a"


async def test_parking_a_run_that_somebody_took(net: Net) -> None:
    """Lesson 3: a node that has lost the claim by the time it parks a run leaves it alone."""
    run_id = await interrupted(net)
    peer = await net.peer(Shrunk, plan=[Fault("hang", at=1, method="append")])
    await net.advance(5 * LEASE)
    journal = await net.memory.load(run_id)
    assert journal is not None
    claim = Claim(run_id, peer.node, journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "freed", journal.head.length, release=True))
    peer.faults.proceed()
    await net.settle()
    assert await net.status(run_id) == "running"
    assert peer.services.claims == {}


async def test_parking_a_run_that_is_lost(net: Net) -> None:
    """Lesson 9: a run that is gone by the time it is parked needs no parking."""
    run_id = await interrupted(net)
    peer = await net.peer(Shrunk, plan=[Fault("hang", at=2, method="load")])
    await net.advance(5 * LEASE)
    net.lose_run(run_id)
    peer.faults.proceed()
    await net.settle()
    assert peer.services.claims == {}


async def test_mail_of_a_sender_that_is_gone(net: Net) -> None:
    """Architecture 5.8: a run that cannot be read, and has mail, is parked though nobody asks any more."""
    run_id = await interrupted(net)
    journal = await net.memory.load(run_id)
    assert journal is not None
    claim = Claim(run_id, "", journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "newer", journal.head.length, [b"\xc1"]))
    await net.memory.post(run_id, Mail("m1", encode_verb(Verb(0.0, "undo")), "nobody"))
    await net.runtime(Old)
    await net.advance(5 * LEASE)
    assert await net.status(run_id) == "stuck"


async def test_giving_up_what_is_not_owned(net: Net) -> None:
    """Lesson 3: a crash of an owner whose claim is gone parks nothing."""
    peer = await net.peer(Solo)
    run = await peer.runtime.spawn(Solo())
    await run.result()
    await peer.adoption.give_up(run.id, "it crashed")
    assert await net.status(run.id) == "completed"


async def test_undone_in_the_batch_that_took_it_over(net: Net, stage: Stage) -> None:
    """V1: a body that was cut off by a crash, and is undone as its run is taken over, does not run again."""
    first = await net.peer(Chain)
    stage.close("b")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.kill()
    await net.memory.post(run.id, Mail("m1", encode_verb(Verb(0.0, "undo")), "nobody"))
    await net.runtime(Chain)
    await net.advance(2 * LEASE)
    assert await net.status(run.id) == "cancelled"
    assert stage.log == ["a", "b", "compensate b", "undo a"]


async def test_many_runs_of_a_dead_node(net: Net, stage: Stage) -> None:
    """Architecture 4: takeover goes through its work page by page."""
    first = await net.peer(Solo)
    stage.close("a")
    for _ in range(120):
        await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    stage.open("a")
    runtime = await net.runtime(Solo)
    await net.advance(1.5 * LEASE)
    assert [each async for each in runtime.runs(status="running")] == []


async def test_asking_a_runtime_that_begins_to_close(net: Net) -> None:
    """Lesson 43: a verb that is under way when the runtime closes is told so."""
    peer = await net.peer(Solo, plan=[Fault("hang", at=1, method="post")])
    run = await peer.runtime.spawn(Solo())
    await run.result()
    told: list[str] = []

    async def undo() -> None:
        with pytest.raises(RuntimeClosed):
            await run.undo()
        told.append("closed")

    async with net.background() as tasks:
        tasks.start_soon(undo)
        await net.settle()
        peer.services.closing = True
        peer.faults.proceed()
        await net.settle()
        await peer.runtime.close()
        await net.settle()
    assert told == ["closed"]


class Fussy(Struct):
    """A value that can be read until somebody breaks it."""

    number: int
    broken = False

    def __post_init__(self) -> None:
        if type(self).broken:
            raise ValueError("broken")


class Makes(Reactor[Fussy]):
    """A step that returns one."""

    @step
    async def a(self, ctx: Context) -> Fussy:
        """Return it."""
        return Fussy(1)


async def test_a_result_that_cannot_be_read_any_more(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesson 36: whoever waits for a result that cannot be read gets an error; the run is unharmed."""
    peer = await net.peer(Makes, plan=[Fault("hang", at=1, method="append")])
    run = await peer.runtime.spawn(Makes())
    failed: list[str] = []

    async def wait() -> None:
        with pytest.raises(PayloadError):
            await run.result()
        failed.append("unreadable")

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        monkeypatch.setattr(Fussy, "broken", True)
        peer.faults.proceed()
        await net.settle()
    assert failed == ["unreadable"]
    assert await net.status(run.id) == "completed"


async def test_a_stuck_run_without_a_reason(net: Net) -> None:
    """A stuck run whose journal says nothing that can be read is told as stuck all the same."""
    runtime = await net.runtime(Solo)
    run = await runtime.spawn(Solo())
    await run.result()
    await net.settle()
    net.replace_journal(run.id, [encode_record(Recovered(0.0)), b"\xc1"], "stuck")
    with pytest.raises(RunStuck, match="it cannot be read"):
        await run.outcome()


async def test_a_run_without_records(net: Net) -> None:
    """A run whose journal is broken is an error of storage, by name."""
    runtime = await net.runtime(Solo)
    run = await runtime.spawn(Solo())
    await run.result()
    await net.settle()
    net.replace_journal(run.id, [b"\xc1"], "completed")
    with pytest.raises(StorageError, match="cannot be read by this version of Solo"):
        await run.outcome()


async def test_step_of_a_run_that_was_retried_unseen(net: Net, stage: Stage) -> None:
    """`step` of a run that failed and was retried while nobody looked is the retried run's."""
    owner, other = await net.runtime(Chain), await net.runtime(Chain)
    stage.close("undo a")
    stage.errors["b"] = RuntimeError("no")
    run = await owner.spawn(Chain())
    await net.settle()
    results: list[str] = []

    async def wait() -> None:
        results.append(await (await other.get(run.id, Chain)).step(Chain.b))

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        net.lose_hints("changed")
        del stage.errors["b"]
        stage.open("undo a")
        await run.outcome()
        await run.retry()
        await run.result()
        assert results == []
        await net.advance(LEASE / 4 + 1)
    assert results == ["b"]
