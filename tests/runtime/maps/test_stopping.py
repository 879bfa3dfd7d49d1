"""Stopping in the middle of a map: undo, cancel, a timeout, a node that closes (rules V1, S12; arch. 5.5)."""

import pytest

from rewound import Cancelled, Completed, Failed, Reactor, fan_out, step
from tests.runtime.maps.conftest import Outcomes
from tests.runtime.maps.plays import Billing, Board, Charge, Order, Shipping, rows
from tests.runtime.nodes import LEASE, Net
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


async def test_v1_undo_in_the_middle(net: Net, stage: Board, outcomes: Outcomes) -> None:
    """V1: bodies in flight are cut off and compensated, what completed is undone, the rest never starts."""
    runtime = await net.runtime(Shipping)
    stage.close("charge 3", "send 4")
    run = await runtime.spawn(Shipping, rows(6))
    await net.settle()
    assert sorted(stage.acted("charge")) == [0, 1, 2, 3, 4, 5]
    stage.log.clear()
    await run.undo("no longer wanted")
    assert await run.outcome() == Cancelled("no longer wanted", undone=True)
    assert sorted(stage.acted("recall")) == [0, 1, 2, 5]
    assert sorted(stage.acted("refund")) == [0, 1, 2, 4, 5]
    assert stage.acted("void") == [3]
    assert stage.log[-1] == "unprepare"
    assert outcomes.by_index().keys() == set(range(6))


@pytest.mark.parametrize("reactor", [Shipping, Order])
async def test_v1_cancel_in_the_middle_and_undo_later(net: Net, stage: Board, reactor: type[Billing]) -> None:
    """V1: cancel cuts off and takes nothing back; a later undo compensates and undoes all of it."""
    runtime = await net.runtime(reactor)
    stage.close("charge 2")
    run = await runtime.spawn(reactor, rows(4 if reactor is Order else 3))
    await net.settle()
    begun = list(stage.log)
    await run.cancel("stop")
    assert await run.outcome() == Cancelled("stop")
    assert stage.log == begun
    await run.undo("take it back")
    assert await run.outcome() == Cancelled("take it back", undone=True)
    assert sorted(stage.acted("refund")) == [0, 1]
    assert stage.acted("void") == [2]
    assert stage.log[-1] == "unprepare"


async def test_v1_undo_of_a_map_that_is_stopping(net: Net, stage: Board) -> None:
    """V1: an undo cuts off what a failed element had left to settle; the failure stays the cause."""
    runtime = await net.runtime(Shipping)
    stage.errors["charge 1"] = ValueError("declined")
    stage.close("charge 0")
    run = await runtime.spawn(Shipping, rows(3))
    await net.settle()
    await run.undo()
    outcome = await run.outcome()
    assert isinstance(outcome, Failed | Cancelled)
    assert stage.acted("void") == [1, 0]
    assert sorted(stage.acted("refund")) == [2]
    assert stage.log[-1] == "unprepare"


async def test_v1_cancel_then_undo_at_once(net: Net, stage: Board) -> None:
    """V1: an undo that follows a cancel, before the bodies have ended, takes everything back."""
    runtime = await net.runtime(Billing)
    stage.close("charge 1")
    run = await runtime.spawn(Billing, rows(2))
    await net.settle()
    await run.cancel()
    await run.undo()
    assert isinstance(await run.outcome(), Cancelled)
    assert stage.acted("void") == [1]
    assert stage.acted("refund") == [0]
    assert stage.log[-1] == "unprepare"


async def test_s12_the_timeout_of_the_run(net: Net, stage: Board) -> None:
    """S12: it cuts elements off and takes everything back; it never stops the rollback."""
    runtime = await net.runtime(Limited)
    stage.close("charge 1")
    run = await runtime.spawn(Limited, rows(3))
    await net.advance(11)
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "TimeoutError"
    assert stage.acted("void") == [1]
    assert sorted(stage.acted("refund")) == [0, 2]
    assert stage.log[-1] == "unprepare"


class Limited(Billing, timeout=10):
    """A run that may take ten seconds."""


async def test_a_closing_node_lets_elements_finish(net: Net, stage: Board) -> None:
    """Architecture 5.5: within the grace bodies come to their end, no further element begins, all is kept."""
    first = await net.peer(Shipping, grace=5)
    second = await net.peer(Shipping)
    stage.close("charge 0", "charge 1", "charge 2")
    run = await first.runtime.spawn(Shipping, rows(6))
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(first.runtime.close)
        await net.settle()
        stage.open("charge 0", "charge 1", "charge 2")
        await net.advance(LEASE)
    assert await (await second.runtime.get(run.id, Shipping)).outcome() == Completed(6)
    for row in range(6):
        assert stage.times(f"charge {row}") == 1
    assert stage.overlaps == []


async def test_a_closing_node_cuts_elements_off(net: Net, stage: Board) -> None:
    """Architecture 5.5: after the grace they are cut off, and run again elsewhere; nothing is undone."""
    first, second = await net.peer(Shipping), await net.peer(Shipping)
    stage.close("charge 1")
    run = await first.runtime.spawn(Shipping, rows(3))
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(first.runtime.close)
        await net.settle()
    stage.open("charge 1")
    await net.advance(LEASE)
    assert await (await second.runtime.get(run.id, Shipping)).outcome() == Completed(3)
    assert stage.times("charge 1") == 2
    assert stage.times("send 0") == stage.times("send 1") == 1
    one, again = stage.keys["charge 1"]
    assert one == again
    assert stage.acted("void") == []


async def test_a_closing_node_on_the_way_back(net: Net, stage: Board) -> None:
    """Architecture 5.5, R6: an undo that was cut off runs again elsewhere; no recorded one does."""
    first, second = await net.peer(Shipping), await net.peer(Shipping)
    stage.errors["last"] = ValueError("no")
    stage.close("refund 4")
    run = await first.runtime.spawn(Shipping, rows(6))
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(first.runtime.close)
        await net.settle()
    stage.open("refund 4")
    await net.advance(LEASE)
    assert isinstance(await (await second.runtime.get(run.id, Shipping)).outcome(), Failed)
    assert stage.times("refund 4") == 2
    for row in range(6):
        assert stage.times(f"recall {row}") == 1
        assert row == 4 or stage.times(f"refund {row}") == 1
    assert stage.log[-1] == "unprepare"


async def test_closing_again_and_again_is_no_death(net: Net, stage: Board) -> None:
    """Architecture 5.7: a graceful release does not count towards `max_recoveries`."""
    stage.close("charge 0")
    peer = await net.peer(Shipping, max_recoveries=1)
    run = await peer.runtime.spawn(Shipping, rows(2))
    for _ in range(4):
        await net.settle()
        async with net.background() as tasks:
            tasks.start_soon(peer.runtime.close)
            await net.settle()
        peer = await net.peer(Shipping, max_recoveries=1)
        await net.advance(LEASE)
    stage.open("charge 0")
    assert await (await peer.runtime.get(run.id, Shipping)).outcome() == Completed(2)


async def test_s3_the_map_fails_beside_a_slow_step(net: Net, stage: Board) -> None:
    """S3, S4: a sibling in flight settles first; compensates and undos come in the order of the records."""
    runtime = await net.runtime(Slow)
    stage.errors["charge 1"] = ValueError("declined")
    stage.close("beside")
    run = await runtime.spawn(Slow, rows(2))
    await net.settle()
    assert "refund 0" not in stage.log
    stage.open("beside")
    await run.outcome()
    assert stage.log[-2:] == ["refund 0", "undo beside"]


class Slow(Reactor[None]):
    """A map beside a step that has an undo."""

    rows: list[int]
    charges = fan_out(Charge, over="rows", batch_size=1)

    @step
    async def beside(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "beside")

    @beside.undo
    async def unbeside(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo beside")
