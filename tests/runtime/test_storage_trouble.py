"""Storage that fails while runs go on."""

import logging

import pytest

from rewound import (
    Completed,
    Failed,
    JournalMismatch,
    RunNotFound,
    RunStuck,
    Runtime,
    StorageConfigError,
    StorageError,
)
from rewound.storage.faults import Fault
from rewound.storage.protocol import Check, Claim, Commit
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Solo
from tests.runtime.servers import Changing

pytestmark = pytest.mark.anyio


async def test_a_failed_append_delays_the_run(net: Net, stage: Stage) -> None:
    """Lesson 9: an owner that cannot write ends, and the run goes on when storage is back."""
    runtime = await net.runtime(Chain, plan=[Fault("fail", at=2, method="append")])
    run = await runtime.spawn(Chain())
    await net.advance(LEASE)
    assert await run.result(timeout=1) == "c"
    assert stage.log == ["a", "b", "b", "c"]


async def test_an_append_whose_answer_was_lost(net: Net, stage: Stage) -> None:
    """Architecture 4: what was stored is not run again, though nobody heard that it was."""
    runtime = await net.runtime(Chain, plan=[Fault("fail", at=1, method="append", when="after")])
    run = await runtime.spawn(Chain())
    await net.advance(LEASE)
    assert await run.result(timeout=1) == "c"
    assert stage.times("a") == 1


async def test_a_failed_verb_is_retried_by_mail(net: Net, stage: Stage) -> None:
    """A verb whose owner could not write it reaches the next owner."""
    runtime = await net.runtime(Chain, plan=[Fault("fail", at=2, method="append")])
    stage.close("b")
    run = await runtime.spawn(Chain())
    await run.step(Chain.a)
    async with net.background() as tasks:
        tasks.start_soon(run.cancel)
        await net.advance(LEASE)
    assert await net.status(run.id) == "cancelled"


async def test_lost_records_reach_local_waiters(net: Net, stage: Stage) -> None:
    """Architecture 4: lost records stop the owner; waiters get `StorageError`; the run goes on."""
    runtime = await net.runtime(Chain)
    stage.close("c")
    run = await runtime.spawn(Chain())
    failed: list[str] = []

    async def wait() -> None:
        with pytest.raises(JournalMismatch) as raised:
            await run.result()
        failed.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        net.lose_record(run.id)
        stage.open("c")
        await net.settle()
    assert "storage lost some" in failed[0]
    await net.advance(LEASE)
    assert await run.outcome() == Completed("c")


async def test_a_lost_run_reaches_local_waiters(net: Net, stage: Stage) -> None:
    """Architecture 4: the same for a run that storage lost altogether."""
    runtime = await net.runtime(Solo)
    stage.close("a")
    run = await runtime.spawn(Solo())
    failed: list[str] = []

    async def wait() -> None:
        with pytest.raises(StorageError, match="storage lost it"):
            await run.result()
        failed.append(run.id)

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        net.lose_run(run.id)
        stage.open("a")
        await net.settle()
    assert failed == [run.id]
    await net.advance(3 * LEASE)
    with pytest.raises(RunNotFound):
        await run.result()


async def test_joining_that_fails(net: Net) -> None:
    """A runtime that cannot join is not entered, and says why; it may be entered again."""
    storage = Changing(net.memory, fail_joins=1)
    runtime = Runtime(storage, reactors=[Solo], state={"stage": net.stage})
    with pytest.raises(StorageError, match="not now"):
        await runtime.__aenter__()
    async with runtime:
        assert await runtime.run(Solo()) == "a"


async def test_unfit_storage() -> None:
    """A storage that refuses to open is refused by name."""
    with pytest.raises(StorageConfigError, match="'nosql'"):
        await Runtime("nosql://localhost").__aenter__()


async def test_warnings_of_the_storage(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """What a storage puts at risk is logged when the runtime starts, and is what `doctor` says."""
    checks = [Check("persistence", "warn", "a restart loses runs"), Check("policy", "ok", "fine")]
    runtime = Runtime(Changing(net.memory, checks=checks), reactors=[Solo])
    async with runtime:
        assert await runtime.doctor() == checks
    told = [record.getMessage() for record in caplog.records if record.name == "rewound.claim"]
    assert told == ['rewound.claim.storage check=persistence reason="a restart loses runs"']


async def test_one_scan_after_each_failover(net: Net) -> None:
    """Architecture 4: a server that changed is scanned once, page by page; a scan that fails is repeated."""
    server = Changing(net.memory, pages=3)
    await net.runtime(Solo, storage=server)
    await net.advance(LEASE)
    assert server.scanned == []
    server.name = "another"
    server.fail_scans = 1
    await net.advance(2 * LEASE)
    assert server.scanned == [None, None, "1", "2"]


async def test_a_broken_channel_is_opened_again(net: Net, stage: Stage) -> None:
    """Lesson 11: a node whose channel broke listens again, and looks at everything once."""
    server = Changing(net.memory, broken_channels=2)
    owner = await net.runtime(Solo)
    other = await net.runtime(Solo, storage=server)
    stage.close("a")
    run = await owner.spawn(Solo())
    results: list[str] = []

    async def wait() -> None:
        results.append(await (await other.get(run.id, Solo)).result())

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.advance(LEASE / 4 + 0.5)
        stage.open("a")
        await net.settle()
    assert results == ["a"]


async def test_an_owner_that_crashes_again_and_again(net: Net, stage: Stage) -> None:
    """Architecture 2: a crash of an owner is restarted from storage, and parks the run after some times."""
    runtime = await net.runtime(Chain)
    stage.close("b")
    run = await runtime.spawn(Chain())
    await net.settle()
    net.break_journal(run.id)
    stage.open("b")
    await net.advance(LEASE)
    assert await net.status(run.id) == "stuck"
    with pytest.raises(RunStuck, match="crashed again and again: KeyError: 'gone'"):
        await run.outcome()


async def test_a_failed_run_is_kept_with_its_failures(net: Net, stage: Stage) -> None:
    """Architecture 4: rollback failures keep a run from expiring; others expire after the retention."""
    runtime = await net.runtime(Chain, retention=50)
    stage.errors |= {"b": RuntimeError("no")}
    clean = await runtime.spawn(Chain())
    assert isinstance(await clean.outcome(), Failed)
    stage.errors |= {"undo a": RuntimeError("no")}
    unclean = await runtime.spawn(Chain())
    await unclean.outcome()
    await net.advance(100)
    with pytest.raises(RunNotFound):
        await clean.status()
    assert await unclean.status() == "failed"


async def test_leaving_when_storage_is_gone(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """Lesson 8: a node that cannot say goodbye leaves all the same."""
    caplog.set_level(logging.WARNING)
    peer = await net.peer(Solo, plan=[Fault("fail", at=1, method="leave")])
    await peer.runtime.close()
    assert "rewound.claim.leave" in caplog.text


async def test_watching_again_after_a_lost_lease(net: Net, stage: Stage) -> None:
    """A waiter hears of its run under the node's next id, too."""
    owner, other = await net.runtime(Solo), await net.peer(Solo)
    stage.close("a")
    run = await owner.spawn(Solo())
    results: list[str] = []

    async def wait() -> None:
        results.append(await (await other.runtime.get(run.id, Solo)).result())

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        await net.memory.leave(other.node)
        await net.advance(LEASE)
        stage.open("a")
        await net.settle()
    assert results == ["a"]


async def test_a_claim_that_is_taken_away_between_claim_and_start(net: Net, stage: Stage) -> None:
    """Lesson 3: an owner that finds its run claimed by another does nothing."""
    first = await net.peer(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    slow = await net.peer(Solo, plan=[Fault("hang", at=1, method="load")])
    await net.advance(1.5 * LEASE)
    journal = await net.memory.load(run.id)
    assert journal is not None
    assert journal.head.node == slow.node
    claim = Claim(run.id, slow.node, journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "gone", journal.head.length, release=True, wake=True))
    other = await net.runtime(Solo)
    await net.settle()
    slow.faults.proceed()
    await net.settle()
    assert (stage.times("a"), stage.overlaps) == (2, [])
    stage.open("a")
    assert await (await other.get(run.id, Solo)).result(timeout=1) == "a"
