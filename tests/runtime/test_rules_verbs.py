"""What a person may ask of a run: docs/rules.md section 3."""

from typing import Any

import pytest

from rewound import (
    Cancelled,
    Completed,
    Failed,
    Reactor,
    RollbackIncomplete,
    RollbackInProgress,
    WrongStatus,
)
from tests.runtime.nodes import Net, Stage
from tests.runtime.plays import Chain, Solo

pytestmark = pytest.mark.anyio


async def test_undo_of_a_running_run(net: Net, stage: Stage) -> None:
    """V1: undo cancels bodies in flight, compensates them, undoes the rest, ends `cancelled`."""
    runtime = await net.runtime(Chain)
    stage.close("b")
    run = await runtime.spawn(Chain())
    await run.step(Chain.a)
    await run.undo("no longer wanted")
    assert await run.outcome() == Cancelled("no longer wanted", undone=True)
    assert stage.log == ["a", "b", "compensate b", "undo a"]


async def test_cancel_then_undo(net: Net, stage: Stage) -> None:
    """V1: cancel compensates and undoes nothing; a later undo does both."""
    runtime = await net.runtime(Chain)
    stage.close("b")
    run = await runtime.spawn(Chain())
    await run.step(Chain.a)
    await run.cancel("stop")
    assert await run.outcome() == Cancelled("stop")
    assert stage.log == ["a", "b"]
    await run.undo("take it back")
    assert await run.outcome() == Cancelled("take it back", undone=True)
    assert stage.log == ["a", "b", "compensate b", "undo a"]


async def test_verbs_while_rolling_back(net: Net, stage: Stage) -> None:
    """Section 3, scenario 11: undo, cancel and retry are refused during a rollback; nothing changes."""
    runtime = await net.runtime(Chain)
    stage.close("undo a")
    stage.errors["b"] = RuntimeError("no")
    run = await runtime.spawn(Chain())
    await net.settle()
    before = await net.records(run.id)
    for verb in (runtime.undo, runtime.cancel, runtime.retry):
        with pytest.raises(RollbackInProgress):
            await verb(run.id)
    assert await net.records(run.id) == before


async def test_retry_starts_a_new_generation(net: Net, stage: Stage) -> None:
    """V2, scenario 14: a rolled-back run that is retried runs every step again under new keys."""
    runtime = await net.runtime(Chain)
    stage.errors["b"] = RuntimeError("no")
    run = await runtime.spawn(Chain())
    await run.outcome()
    del stage.errors["b"]
    await run.retry()
    assert await run.outcome() == Completed("c")
    assert stage.log == ["a", "b", "compensate b", "undo a", "a", "b", "c"]
    assert len(set(stage.keys["a"])) == 2


async def test_retry_with_rollback_failures_left(net: Net, stage: Stage) -> None:
    """V2: retry is refused while rollback failures are left; undo repeats only those."""
    runtime = await net.runtime(Chain)
    stage.errors |= {"b": RuntimeError("no"), "undo a": RuntimeError("not now")}
    run = await runtime.spawn(Chain())
    await run.outcome()
    with pytest.raises(RollbackIncomplete, match="1 rollback failure"):
        await run.retry()
    stage.log.clear()
    del stage.errors["undo a"]
    await run.undo()
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.rollback_failures == []
    assert stage.log == ["undo a"]
    await run.retry()


@pytest.mark.parametrize(("play", "verb"), [(Solo, "cancel"), (Solo, "retry")])
async def test_verbs_a_status_does_not_allow(net: Net, play: type[Reactor[Any]], verb: str) -> None:
    """Section 3: anything else is `WrongStatus`."""
    runtime = await net.runtime(play)
    run = await runtime.spawn(play, {})
    await run.outcome()
    with pytest.raises(WrongStatus, match="the run is completed, which allows undo"):
        await getattr(runtime, verb)(run.id)
