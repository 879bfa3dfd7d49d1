"""The small print of the public surface: every argument, every refusal."""

import anyio
import pytest

from rewound import (
    Context,
    DefinitionError,
    PayloadTooLarge,
    Reactor,
    RollbackInProgress,
    RunNotFound,
    RunStuck,
    RunSummary,
    WrongStatus,
    step,
)
from rewound.storage.faults import Fault
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Fork, Later, Solo

pytestmark = pytest.mark.anyio


async def test_listing_goes_on_behind_a_page(net: Net) -> None:
    """Lesson 34: a listing of more than one page has every run once."""
    runtime = await net.runtime(Solo)
    for _ in range(55):
        await runtime.spawn(Solo())
    await net.settle()
    assert len({each.run_id async for each in runtime.runs(reactor="Solo")}) == 55
    assert [each async for each in runtime.runs(reactor=Solo, status="failed")] == []


async def test_history(net: Net) -> None:
    """`history` gives a run's summary and its events so far."""
    runtime = await net.runtime(Solo)
    run = await runtime.spawn(Solo(), key="k")
    await run.result()
    summary, events = await runtime.history(run.id)
    assert summary == RunSummary(run.id, "Solo", "completed", net.clock.time(), net.clock.time(), "k")
    assert [event.name for event in events][-1] == "run.ended"
    with pytest.raises(RunNotFound):
        await runtime.history("nowhere")


async def test_what_spawn_refuses(net: Net) -> None:
    """`spawn` takes an instance, or a class with a mapping; nothing else."""
    runtime = await net.runtime(Solo)
    with pytest.raises(DefinitionError, match="spawn takes a reactor or its class, not 17"):
        await runtime.spawn(17)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(DefinitionError, match="Solo was given with its inputs; leave out the mapping"):
        await runtime.spawn(Solo(), {"note": "x"})  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]


async def test_inputs_that_are_too_large(net: Net) -> None:
    """Architecture 4: inputs above `max_payload` are refused before anything is stored."""
    runtime = await net.runtime(Solo, max_payload=100)
    with pytest.raises(PayloadTooLarge, match=r"Solo: the inputs take 208 bytes, more than max_payload=100"):
        await runtime.spawn(Solo(note="x" * 200))
    assert [each async for each in runtime.runs()] == []


async def test_get_with_another_reactor(net: Net) -> None:
    """`get` does not hand out a run under the type of another reactor."""
    runtime = await net.runtime(Solo, Chain)
    run = await runtime.spawn(Solo())
    assert (await runtime.get(run.id)).reactor == "Solo"
    with pytest.raises(RunNotFound, match="is of reactor 'Solo', not 'Chain'"):
        await runtime.get(run.id, Chain)


async def test_step_of_another_reactor(net: Net) -> None:
    """`step` knows the steps of the run's own reactor."""
    runtime = await net.runtime(Solo, Chain)
    run = await runtime.spawn(Solo())
    with pytest.raises(DefinitionError, match="Solo has no step 'b'"):
        await run.step(Chain.b)


async def test_timeout_of_a_wait(net: Net, stage: Stage) -> None:
    """Every wait for a run takes a timeout, which leaves the run alone."""
    runtime = await net.runtime(Chain)
    stage.close("b")
    run = await runtime.spawn(Chain())
    late: list[str] = []

    async def wait() -> None:
        with pytest.raises(TimeoutError, match="did not get there within 3 s; it goes on"):
            await run.step(Chain.b, timeout=3)
        with pytest.raises(TimeoutError):
            await run.outcome(timeout=3)
        late.append("twice")

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.advance(7)
    assert late == ["twice"]
    stage.open("b")
    assert await run.result() == "c"


async def test_status_of_no_run(net: Net) -> None:
    """A run that is gone has no status."""
    runtime = await net.runtime(Solo, retention=1)
    run = await runtime.spawn(Solo())
    await run.result()
    await net.advance(5)
    with pytest.raises(RunNotFound):
        await run.status()


class Logs(Reactor[None]):
    """A step that logs."""

    @step
    async def a(self, ctx: Context) -> None:
        """Log."""
        ctx.log.warning("hello", extra={"more": 1})


async def test_the_log_of_a_step(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """`ctx.log` names run, step and attempt in each record."""
    runtime = await net.runtime(Logs)
    run = await runtime.spawn(Logs())
    await run.result()
    fields = vars(caplog.records[0])
    assert (fields["run_id"], fields["step"], fields["attempt"], fields["more"]) == (run.id, "a", 1, 1)


async def test_a_body_with_a_timeout_can_be_cut(net: Net, stage: Stage) -> None:
    """V1: a body that is cut has not taken too long."""
    runtime = await net.runtime(Timed)
    run = await runtime.spawn(Timed())
    await net.settle()
    await run.undo()
    await run.outcome()
    assert [event.name async for event in run.events()][2:4] == ["run.undo", "step.cut"]


class Timed(Reactor[None]):
    """A step that may take ten seconds."""

    @step(timeout=10)
    async def a(self) -> None:
        """Wait."""
        await anyio.sleep_forever()


async def test_a_run_that_waits_for_slots_can_be_cancelled(net: Net, stage: Stage) -> None:
    """Lesson 10: a run that ends leaves the queue for slots; they go to others."""
    runtime = await net.runtime(Fork, Solo, concurrency=1)
    stage.close("left", "middle", "right")
    run = await runtime.spawn(Fork())
    await net.settle()
    await run.cancel()
    await run.outcome()
    assert await runtime.run(Solo()) == "a"
    assert sum(stage.times(name) for name in ("left", "middle", "right")) == 1


async def test_mail_at_the_end_of_a_run(net: Net, stage: Stage) -> None:
    """Architecture 4: mail that came in unheard is answered before an ended run is given up."""
    owner, other = await net.peer(Solo), await net.runtime(Solo)
    stage.close("a")
    run = await owner.runtime.spawn(Solo())
    await net.settle()
    net.lose_hints("mail")
    refused: list[str] = []

    async def cancel() -> None:
        with pytest.raises(WrongStatus) as raised:
            await other.cancel(run.id)
        refused.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(cancel)
        await net.settle()
        stage.open("a")
        await net.settle()
    assert refused == ["cancel was refused: the run is completed, which allows undo"]
    assert owner.services.owners == {}


async def test_a_verb_whose_claim_fails_is_tried_again(net: Net, stage: Stage) -> None:
    """Lesson 9: an undo of a run that nobody owns survives a failure of storage."""
    runtime = await net.runtime(Solo, plan=[Fault("fail", at=1, method="claim")])
    run = await runtime.spawn(Solo())
    await run.result()
    async with net.background() as tasks:
        tasks.start_soon(run.undo)
        await net.advance(3 * LEASE)
    assert await net.status(run.id) == "cancelled"


async def test_a_due_alarm_without_a_free_slot(net: Net, stage: Stage) -> None:
    """Architecture 4: an alarm that led to nothing yet comes again."""
    runtime = await net.runtime(Later, Solo, concurrency=1)
    run = await runtime.spawn(Later())
    await net.settle()
    stage.close("a")
    await runtime.spawn(Solo())
    await net.advance(3600 + 3 * LEASE)
    assert stage.times("a") == 2
    stage.open("a")
    assert await run.result(timeout=1) == "at last"


async def test_a_run_that_is_lost_while_it_is_taken_over(net: Net, stage: Stage) -> None:
    """Lesson 9: an owner whose run is gone by the time it reads it ends quietly."""
    first = await net.peer(Solo)
    stage.close("a")
    run = await first.runtime.spawn(Solo())
    await net.settle()
    await first.kill()
    peer = await net.peer(Solo, plan=[Fault("hang", at=1, method="load")])
    await net.advance(1.5 * LEASE)
    net.lose_run(run.id)
    peer.faults.proceed()
    await net.advance(3 * LEASE)
    assert (peer.services.owners, peer.services.claims) == ({}, {})


async def test_a_key_whose_run_was_lost(net: Net, stage: Stage) -> None:
    """A7: a key whose run storage has lost is free when the old owner has ended, and not before."""
    runtime = await net.runtime(Solo)
    stage.close("a")
    lost = await runtime.spawn(Solo(), key="k")
    await net.settle()
    net.lose_run(lost.id)
    spawned: list[bool] = []

    async def spawn() -> None:
        spawned.append((await runtime.spawn(Solo(), key="k")).existing)

    async with net.background() as tasks:
        tasks.start_soon(spawn)
        await net.settle()
        assert spawned == []
        stage.open("a")
        await net.settle()
    assert spawned == [False]
    assert stage.overlaps == []


async def test_step_of_a_stuck_run(net: Net, stage: Stage) -> None:
    """A step that a stuck run has not reached is not waited for; one that it has is given."""
    first = await net.peer(Chain, max_recoveries=0)
    stage.close("b")
    run = await first.runtime.spawn(Chain())
    await net.settle()
    await first.kill()
    runtime = await net.runtime(Chain, max_recoveries=0)
    await net.advance(2 * LEASE)
    handle = await runtime.get(run.id, Chain)
    assert await handle.step(Chain.a) == "a"
    with pytest.raises(RunStuck):
        await handle.step(Chain.b)


class Tidy(Reactor[None]):
    """A step that tidies up when it is cut."""

    @step
    async def a(self, ctx: Context) -> None:
        """Wait to be cut, then tidy up for as long as the gate is shut."""
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ctx.state["stage"].act("tidy up")


async def test_a_body_may_tidy_up(net: Net, stage: Stage) -> None:
    """V1: a body that is cut is cut once; what it does about it is waited for."""
    runtime = await net.runtime(Tidy)
    stage.close("tidy up")
    run = await runtime.spawn(Tidy())
    await net.settle()
    await run.undo()
    with pytest.raises(RollbackInProgress):
        await run.undo()
    await net.settle()
    assert await net.status(run.id) == "rolling_back"
    stage.open("tidy up")
    await run.outcome()
    assert stage.log == ["tidy up"]
