"""A node dies: another one, or the next one, goes on with its runs."""

import anyio
import pytest

from rewound import Completed, Failed, Reactor, RunStuck, step
from rewound.storage.faults import Fault
from rewound.storage.protocol import Claim, Commit
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Fork, Solo, Stagehand, act

pytestmark = pytest.mark.anyio


async def test_another_node_goes_on(net: Net, stage: Stage) -> None:
    """Architecture 5.4, lesson 8: within two leases of a death another goes on behind the last record."""
    first, second = await net.peer(Chain), await net.peer(Chain)
    stage.close("b")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.kill()
    stage.open("b")
    assert stage.log == ["a", "b"]
    await net.advance(2 * LEASE)
    assert await (await second.runtime.get(run.id, Chain)).outcome() == Completed("c")
    assert stage.log == ["a", "b", "b", "c"]


async def test_the_cut_body_keeps_its_idempotency_key(net: Net, stage: Stage) -> None:
    """S9: what was cut off by a crash runs again under the same idempotency key."""
    first, second = await net.peer(Chain), await net.peer(Chain)
    stage.close("b")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.kill()
    stage.open("b")
    await net.advance(2 * LEASE)
    await (await second.runtime.get(run.id, Chain)).outcome()
    one, again = stage.keys["b"]
    assert one == again


async def test_rollback_goes_on_behind_the_last_undo(net: Net, stage: Stage) -> None:
    """S9, lesson 5: only the undo that was cut off runs again; those recorded do not."""
    first, second = await net.peer(Fork), await net.peer(Fork)
    stage.errors["join"] = RuntimeError("no")
    stage.close("undo a")
    run = await first.runtime.spawn(Fork())
    await net.settle()
    await first.kill()
    stage.open("undo a")
    await net.advance(2 * LEASE)
    assert isinstance(await (await second.runtime.get(run.id, Fork)).outcome(), Failed)
    undone = [name for name in stage.log if name.startswith("undo")]
    assert undone[-2:] == ["undo a", "undo a"]
    assert len(undone) == len(set(undone)) + 1


async def test_siblings_of_a_failing_run_settle_after_a_crash(net: Net, stage: Stage) -> None:
    """S3: after a crash, the in-flight siblings of a failing run run again until they settle."""
    first, second = await net.peer(Fork), await net.peer(Fork)
    stage.errors["middle"] = RuntimeError("no")
    stage.close("left")
    run = await first.runtime.spawn(Fork())
    await net.settle()
    await first.kill()
    stage.open("left")
    await net.advance(2 * LEASE)
    await (await second.runtime.get(run.id, Fork)).outcome()
    assert stage.times("left") == 2
    assert stage.log[-4:] == ["compensate middle", "undo left", "undo right", "undo a"]


async def test_restart_of_the_only_node(net: Net, stage: Stage) -> None:
    """Architecture 5.4: a runtime that is started again goes on with what the dead one left."""
    first = await net.peer(Chain)
    stage.close("c")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.kill()
    stage.open("c")
    runtime = await net.runtime(Chain)
    await net.advance(2 * LEASE)
    assert await (await runtime.get(run.id, Chain)).result() == "c"


async def test_results_keep_their_types_over_a_takeover(net: Net, stage: Stage) -> None:
    """Lesson 36: a recovered run hands the same values to later steps as an uninterrupted one."""
    first, second = await net.peer(Typed), await net.peer(Typed)
    stage.close("show")
    run = await first.runtime.spawn(Typed(numbers=(1, 2)))
    await net.settle()
    await first.kill()
    stage.open("show")
    await net.advance(2 * LEASE)
    assert await (await second.runtime.get(run.id, Typed)).result() == "(1, 2) {3}"


class Typed(Reactor[str]):
    """Values that plain data cannot tell apart."""

    numbers: tuple[int, ...]

    @step
    async def more(self) -> set[int]:
        """Return a set."""
        return {3}

    @step
    async def show(self, more: set[int], ctx: Stagehand) -> str:
        """Show them."""
        await act(ctx, "show")
        return f"{self.numbers} {more}"


async def test_two_nodes_take_over_one_run(net: Net, stage: Stage) -> None:
    """Lesson 3, scenario 10: of two nodes that claim a dead node's run, one runs it."""
    first = await net.peer(Solo)
    others = [await net.peer(Solo) for _ in range(2)]
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    await net.advance(2 * LEASE)
    assert (stage.times("a"), stage.overlaps) == (2, [])
    stage.open("a")
    assert await (await others[0].runtime.get(run.id, Solo)).result() == "a"
    assert stage.times("a") == 2


async def test_crash_between_claim_and_start(net: Net, stage: Stage) -> None:
    """Lesson 8: a node that dies after it claimed a run and before it started an owner loses nothing."""
    first = await net.peer(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    stage.open("a")
    second = await net.peer(Solo, plan=[Fault("crash", at=1, when="after", method="claim")])
    await net.advance(2 * LEASE)
    assert second.faults.crashed.is_set()
    await second.kill()
    third = await net.runtime(Solo)
    await net.advance(2 * LEASE)
    assert await (await third.get(run.id, Solo)).result() == "a"


async def test_claim_whose_answer_was_lost(net: Net, stage: Stage) -> None:
    """Lesson 9: a claim that was stored and never confirmed is not forgotten by its node."""
    first = await net.peer(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    stage.open("a")
    runtime = await net.runtime(Solo, plan=[Fault("fail", at=1, when="after", method="claim")])
    await net.advance(2 * LEASE)
    assert await (await runtime.get(run.id, Solo)).result(timeout=1) == "a"


async def test_storage_failure_during_recovery_delays_it(net: Net, stage: Stage) -> None:
    """Lesson 9: storage that goes away while a run is taken over drops no run."""
    first = await net.peer(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    stage.open("a")
    plan = [Fault("fail", at=number, method="attention") for number in (2, 3)]
    plan += [Fault("fail", at=1, method="claim"), Fault("fail", at=1, method="load")]
    runtime = await net.runtime(Solo, plan=plan)
    await net.advance(3 * LEASE)
    assert await (await runtime.get(run.id, Solo)).result(timeout=1) == "a"


async def test_a_step_that_kills_its_process(net: Net, stage: Stage) -> None:
    """Architecture 5.7: after `max_recoveries` deaths in one body the run is stuck until a retry."""
    stage.close("a")
    peer = await net.peer(Solo, max_recoveries=2)
    run = await peer.runtime.spawn(Solo())
    await net.settle()
    for _ in range(3):
        await peer.kill()
        peer = await net.peer(Solo, max_recoveries=2)
        await net.advance(2 * LEASE)
    handle = await peer.runtime.get(run.id, Solo)
    with pytest.raises(RunStuck, match=r"died 3 times in a row while a was in flight"):
        await handle.outcome()
    assert stage.times("a") == 3
    stage.open("a")
    await handle.retry()
    assert await handle.result() == "a"


async def test_a_graceful_release_does_not_count(net: Net, stage: Stage) -> None:
    """Architecture 5.7: only deaths count, not shutdowns."""
    stage.close("a")
    peer = await net.peer(Solo, max_recoveries=0)
    run = await peer.runtime.spawn(Solo())
    for _ in range(3):
        await net.settle()
        await peer.runtime.close()
        peer = await net.peer(Solo, max_recoveries=0)
    stage.open("a")
    assert await (await peer.runtime.get(run.id, Solo)).result() == "a"


async def test_a_bad_run_strands_no_other(net: Net, stage: Stage) -> None:
    """Lesson 7: a run that cannot be read does not keep the others of its node from being taken over."""
    first = await net.peer(Solo)
    stage.close("a")
    runs = [await first.runtime.spawn(Solo(note=str(number))) for number in range(3)]
    await net.settle()
    await first.kill()
    stage.open("a")
    journal = await net.memory.load(runs[0].id)
    assert journal is not None
    claim = Claim(runs[0].id, journal.head.node or "", journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "bad", journal.head.length, [b"\xc1"]))
    runtime = await net.runtime(Solo)
    await net.advance(2 * LEASE)
    for run in runs[1:]:
        assert await (await runtime.get(run.id, Solo)).result(timeout=1) == "a"
    await net.advance(2 * LEASE)
    assert await net.status(runs[0].id) == "stuck"


async def test_a_released_run_is_woken_elsewhere_at_once(net: Net, stage: Stage) -> None:
    """Architecture 5.5: a node that leaves gives its runs up so that others take them without waiting."""
    first, second = await net.peer(Chain), await net.peer(Chain)
    stage.close("b")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.runtime.close()
    stage.open("b")
    await net.advance(LEASE / 4)
    assert await (await second.runtime.get(run.id, Chain)).result(timeout=1) == "c"


async def test_a_waiter_follows_a_run_to_another_node(net: Net, stage: Stage) -> None:
    """A result is waited for wherever the run goes."""
    first, second = await net.peer(Solo), await net.peer(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    results: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            results.append(await (await second.runtime.get(run.id, Solo)).result())

        tasks.start_soon(wait)
        await net.settle()
        await first.kill()
        stage.open("a")
        await net.advance(2 * LEASE)
    assert results == ["a"]
