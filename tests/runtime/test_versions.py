"""Rolling deploys: runs that another version of a reactor, or of Rewound, has written (A8, A9)."""

import logging
from typing import Any

import pytest

from rewound import (
    Completed,
    DefinitionError,
    Failed,
    Reactor,
    RunStuck,
    Runtime,
    StorageError,
    WrongStatus,
    plan_of,
    step,
)
from rewound.runtime.engine.records import FORMAT, Spawned, encode_record
from rewound.runtime.node.objections import objection_to
from rewound.storage.faults import Fault
from rewound.storage.protocol import Claim, Commit
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Solo, Stagehand, act

pytestmark = pytest.mark.anyio


class Old(Reactor[str], name="Shop"):
    """The version that started the run."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @step
    async def b(self, a: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "b")


class Grown(Reactor[str], name="Shop", version=2):
    """A version with one more input and one more step."""

    item: str = "book"
    gift: bool = False

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @step
    async def b(self, a: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "b")

    @step
    async def c(self, b: str, ctx: Stagehand) -> str:
        """Act."""
        await act(ctx, f"c, gift: {self.gift}")
        return "grown"


class Retyped(Reactor[str], name="Shop", version=3):
    """A version whose first step returns something else."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> int:
        """Act."""
        return len(await act(ctx, "a"))

    @step
    async def b(self, a: int, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"b {a}")


class Shrunk(Reactor[str], name="Shop", version=4):
    """A version without the step that was in flight."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")


class Reordered(Reactor[str], name="Shop", version=5):
    """A version whose step that was in flight needs one that did not exist."""

    item: str = "book"

    @step
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @step
    async def z(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "z")

    @step
    async def b(self, a: str, z: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "b")


class Demanding(Old, name="Shop", version=6):
    """A version with a new input that has no default."""

    price: int


async def interrupted(net: Net) -> str:
    """Leave a run of the old version with `b` in flight, and its node dead."""
    first = await net.peer(Old)
    net.stage.close("b")
    run = await first.runtime.spawn(Old())
    await net.settle()
    await first.kill()
    net.stage.open("b")
    return run.id


async def test_a_compatible_change_goes_on(net: Net, stage: Stage) -> None:
    """A8: a step added that nothing completed depends on, and a new optional input, go on."""
    run_id = await interrupted(net)
    runtime = await net.runtime(Grown)
    await net.advance(2 * LEASE)
    assert await (await runtime.get(run_id, Grown)).result(timeout=1) == "grown"
    assert stage.log == ["a", "b", "b", "c, gift: False"]


@pytest.mark.parametrize(
    ("version", "difference"),
    [
        (Retyped, "step 'a' has completed and returned str, now it returns int"),
        (Shrunk, "step 'b' has begun, and Shop has no such step any more"),
        (Reordered, "step 'b' has begun, and now depends on 'z'"),
        (Demanding, "input 'price' is new and has no default"),
    ],
)
async def test_an_incompatible_change_parks_the_run(
    net: Net, version: type[Reactor[Any]], difference: str
) -> None:
    """A8: a run that no node can go on with for two leases is stuck; the reason is the difference."""
    run_id = await interrupted(net)
    runtime = await net.runtime(version)
    await net.advance(2.5 * LEASE)
    assert await net.status(run_id) == "running"
    await net.advance(2 * LEASE)
    handle = await runtime.get(run_id, version)
    with pytest.raises(RunStuck, match=difference):
        await handle.outcome()


async def test_a_node_that_accepts_the_run_takes_it(net: Net, stage: Stage) -> None:
    """A8, architecture 5.8: a node that objects leaves the run to others, for two leases."""
    run_id = await interrupted(net)
    await net.runtime(Shrunk)
    await net.advance(2 * LEASE)
    runtime = await net.runtime(Old)
    await net.advance(LEASE)
    assert await (await runtime.get(run_id, Old)).outcome() == Completed("b")


async def test_the_two_leases_begin_again_when_somebody_had_the_run(net: Net, stage: Stage) -> None:
    """Architecture 5.8: a node that once objected gives others two leases each time the run is free."""
    run_id = await interrupted(net)
    await net.runtime(Shrunk)
    await net.advance(2 * LEASE)
    second = await net.peer(Old)
    stage.close("b")
    await net.advance(20 * LEASE)
    await second.kill()
    stage.open("b")
    await net.advance(1.5 * LEASE)
    assert await net.status(run_id) == "running"
    third = await net.runtime(Old)
    await net.advance(LEASE)
    assert await (await third.get(run_id, Old)).result(timeout=1) == "b"


async def test_a_stuck_run_goes_on_with_the_right_version(net: Net, stage: Stage) -> None:
    """A8: once the reactor is right again, `retry` lets the run go on."""
    run_id = await interrupted(net)
    wrong = await net.runtime(Shrunk)
    await net.advance(5 * LEASE)
    await wrong.close()
    runtime = await net.runtime(Old)
    await runtime.retry(run_id)
    assert await (await runtime.get(run_id, Old)).outcome() == Completed("b")


async def test_a_verb_on_a_run_that_cannot_go_on(net: Net) -> None:
    """A8: a verb on a run that no node accepts is answered, after two leases."""
    run_id = await interrupted(net)
    runtime = await net.runtime(Shrunk)
    await net.advance(5 * LEASE)
    refused: list[str] = []

    async def retry() -> None:
        with pytest.raises(WrongStatus) as raised:
            await runtime.retry(run_id)
        refused.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(retry)
        await net.advance(4 * LEASE)
    assert "cannot go on: step 'b' has begun" in refused[0]


async def test_the_end_of_an_older_versions_run_can_be_read(net: Net, stage: Stage) -> None:
    """A8: what ended under another version is still told, though the reactor has lost steps."""
    stage.errors["b"] = RuntimeError("no")
    first = await net.runtime(Old)
    run = await first.spawn(Old())
    await run.outcome()
    runtime = await net.runtime(Shrunk)
    outcome = await (await runtime.get(run.id, Shrunk)).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.step, outcome.message, outcome.inputs) == ("b", "no", {"item": "book"})


async def test_inputs_that_cannot_be_read_are_not_shown(net: Net, stage: Stage) -> None:
    """A3, A8: the inputs of another version are left out of a failure, rather than shown unmasked."""
    stage.errors["b"] = RuntimeError("no")
    first = await net.runtime(Old)
    run = await first.spawn(Old())
    await run.outcome()
    runtime = await net.runtime(Demanding)
    outcome = await (await runtime.get(run.id, Demanding)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.inputs == {}


async def test_an_unknown_record_is_left_to_others(net: Net, stage: Stage) -> None:
    """Architecture 5.8: a record that only a newer version can read is a refusal, not a crash."""
    run_id = await interrupted(net)
    journal = await net.memory.load(run_id)
    assert journal is not None
    claim = Claim(run_id, "", journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "newer", journal.head.length, [b"\x92\xcc\xfa\x01"]))
    runtime = await net.runtime(Old)
    await net.advance(3 * LEASE)
    handle = await runtime.get(run_id, Old)
    with pytest.raises(StorageError, match="cannot be read by this version of Shop: UnknownRecord"):
        await handle.outcome()
    await net.advance(2 * LEASE)
    with pytest.raises(RunStuck, match="UnknownRecord: record 4 of the journal cannot be read"):
        await handle.outcome()
    with pytest.raises(RunStuck):
        await handle.step(Old.b)
    assert stage.times("b") == 1


async def test_unreadable_with_mail(net: Net, stage: Stage) -> None:
    """Architecture 5.8: mail to a run that cannot be read is answered when the run is parked."""
    run_id = await interrupted(net)
    journal = await net.memory.load(run_id)
    assert journal is not None
    claim = Claim(run_id, "", journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "newer", journal.head.length, [b"\x92\xcc\xfa\x01"]))
    runtime = await net.runtime(Old)
    refused: list[str] = []

    async def undo() -> None:
        with pytest.raises(WrongStatus) as raised:
            await runtime.undo(run_id)
        refused.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(undo)
        await net.advance(5 * LEASE)
    assert "cannot go on: UnknownRecord" in refused[0]
    assert await net.status(run_id) == "stuck"


async def test_a_newer_record_format(net: Net) -> None:
    """Architecture 5.8: a run of a newer record format is not touched until nobody takes it."""
    run_id = await interrupted(net)
    internals: Any = net.memory
    internals._tables._entries[run_id].format = FORMAT + 1
    await net.runtime(Old)
    await net.advance(5 * LEASE)
    assert await net.status(run_id) == "stuck"


@pytest.mark.parametrize(
    ("journal", "objection"),
    [
        ([], "its journal does not begin with its inputs"),
        ([b"\xc1"], "UnknownRecord"),
        ([encode_record(Spawned(0.0, b"", "Shop", 1, "no shape"))], "ValidationError"),
    ],
)
async def test_journals_that_say_nothing(journal: list[bytes], objection: str) -> None:
    """Lesson 7: a journal that cannot be compared is an objection, never a crash."""
    assert objection in objection_to(journal, plan_of(Old))


async def test_unknown_reactor_is_left_alone(
    net: Net, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A9: a node that lacks a reactor leaves its runs to others, reports that once, fails nothing."""
    caplog.set_level(logging.WARNING, "rewound.claim")
    run_id = await interrupted(net)
    other = await net.runtime(Solo)
    await net.advance(10 * LEASE)
    assert await net.status(run_id) == "running"
    told = [record.message for record in caplog.records if "claim.unknown" in record.message]
    assert told == ["rewound.claim.unknown reactor=Shop runs=1"]
    with pytest.raises(DefinitionError, match="which this runtime does not know"):
        await other.get(run_id)
    runtime = await net.runtime(Old)
    await net.advance(LEASE)
    assert await (await runtime.get(run_id, Old)).result(timeout=1) == "b"


async def test_parking_is_tried_again(net: Net) -> None:
    """Lesson 9: storage that fails while a run is parked delays that."""
    run_id = await interrupted(net)
    await net.runtime(Shrunk, plan=[Fault("fail", at=1, method="append")])
    await net.advance(10 * LEASE)
    assert await net.status(run_id) == "stuck"


async def test_two_tasks_that_take_one_run_over(net: Net, stage: Stage) -> None:
    """Lesson 3: the sweeper and a verb that are about the same run get in each other's way nowhere."""
    run_id = await interrupted(net)
    stage.close("b")
    peer = await net.peer(Grown, plan=[Fault("hang", at=1, method="load")])
    await net.advance(1.5 * LEASE)
    async with net.background() as tasks:
        tasks.start_soon(ask_nothing, peer.runtime, run_id)
        await net.advance(2 * LEASE)
        peer.faults.proceed()
        await net.advance(LEASE)
    assert run_id in peer.services.claims
    assert stage.overlaps == []
    stage.open("b")
    assert await (await peer.runtime.get(run_id, Grown)).result(timeout=1) == "grown"


async def ask_nothing(runtime: Runtime, run_id: str) -> None:
    """Ask for what is refused, so that the run is looked at."""
    with pytest.raises(WrongStatus):
        await runtime.retry(run_id)
