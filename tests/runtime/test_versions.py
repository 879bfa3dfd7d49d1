"""Rolling deploys: runs that another version of a reactor, or of Rewound, has written (A8, A9)."""

import logging
from typing import Any

import pytest

from rewound import (
    Completed,
    DefinitionError,
    Reactor,
    RunStuck,
    Runtime,
    WrongStatus,
)
from rewound.storage.faults import Fault
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Solo
from tests.runtime.plays_versions import Demanding, Grown, Old, Reordered, Retyped, Shrunk, interrupted

pytestmark = pytest.mark.anyio


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


async def test_a_verb_on_an_ended_run_that_cannot_be_undone(net: Net) -> None:
    """A8: an undo that no version of the reactor can carry out is refused; the run stays as it ended."""
    old = await net.runtime(Old)
    run = await old.spawn(Old())
    await run.result()
    await net.settle()
    await old.close()
    runtime = await net.runtime(Shrunk)
    refused: list[str] = []

    async def undo() -> None:
        with pytest.raises(WrongStatus) as raised:
            await runtime.undo(run.id)
        refused.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(undo)
        await net.advance(3 * LEASE)
    assert "step 'b' has completed, and Shop has no such step any more" in refused[0]
    assert await net.status(run.id) == "completed"
