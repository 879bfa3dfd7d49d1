"""A crash at any storage operation: whatever was lost, the run ends as it may end (O2)."""

from contextlib import suppress

import pytest

from rewound import Failed, RollbackFailure, StorageError
from rewound.runtime.engine.records import HandlerSettled, Started, Succeeded, decode_records
from rewound.storage.faults import Fault
from rewound.storage.protocol import Query
from tests.runtime.nodes import LEASE, Net, Peer, Stage
from tests.runtime.plays import Fork

pytestmark = pytest.mark.anyio


FAILURES = {
    "middle": RuntimeError("no"),
    "compensate middle": ValueError("compensate"),
    "undo right": KeyError("undo"),
}

PAUSES = {"right": 1, "middle": 40, "left": 80}
"""So that each branch settles in an append of its own."""

LEFT = {
    RollbackFailure("middle", "compensate", "ValueError", "compensate"),
    RollbackFailure("right", "undo", "KeyError", "'undo'"),
}


async def perform(net: Net, plan: list[Fault]) -> tuple[Peer | None, str | None]:
    """Enter a runtime, spawn the run and let everything happen that can; a crash may end that early."""
    net.stage.errors |= FAILURES
    net.stage.pauses |= PAUSES
    peers: list[Peer] = []

    async def play() -> None:
        with suppress(StorageError):
            peers.append(await net.peer(Fork, plan=plan))
            await peers[0].runtime.spawn(Fork(), key="sweep")

    async with net.background() as tasks:
        tasks.start_soon(play)
        await net.advance(1)
    heads = (await net.memory.runs(Query())).heads
    return (peers[0] if peers else None), (heads[0].run_id if heads else None)


async def crash_free() -> int:
    """Run once without a crash; return how many storage operations that took."""
    net = Net()
    peer, run_id = await perform(net, [])
    assert peer is not None
    assert run_id is not None
    count = len(peer.faults.trace)
    await check(net, peer, run_id, cut=0)
    await net.close()
    return count


async def check(net: Net, peer: Peer, run_id: str, *, cut: int) -> None:
    """Check what every schedule must keep; at most `cut` bodies were cut off by the crash."""
    outcome = await (await peer.runtime.get(run_id, Fork)).outcome(timeout=1)
    assert isinstance(outcome, Failed)
    assert (outcome.step, outcome.error, outcome.others) == ("middle", "RuntimeError", [])
    assert set(outcome.rollback_failures) == LEFT
    assert len(outcome.rollback_failures) == 2
    await check_order(net, run_id)
    check_counts(net.stage, cut)


async def check_order(net: Net, run_id: str) -> None:
    """S4: compensates first, then undos in reverse order of the recorded completions; each recorded once."""
    records = decode_records(await net.records(run_id))
    completed = [record.step for record in records if isinstance(record, Succeeded)]
    handled = [(each.kind, each.step) for each in records if isinstance(each, HandlerSettled)]
    assert sorted(completed) == ["a", "left", "right"]
    assert handled == [("compensate", "middle"), *(("undo", name) for name in reversed(completed))]
    assert {record.attempt for record in records if isinstance(record, Started)} == {1}


def check_counts(stage: Stage, cut: int) -> None:
    """O2: every body and handler ran once, twice only those that the crash cut off."""
    names = {"a", "left", "middle", "right", "compensate middle", "undo a", "undo left", "undo right"}
    assert set(stage.log) == names
    repeated = [name for name in names if stage.times(name) > 1]
    assert all(stage.times(name) == 2 for name in repeated)
    assert len(repeated) <= cut
    assert stage.overlaps == []


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_at_any_operation(anyio_backend: object, when: str) -> None:
    """O2: with one crash before or after any storage operation, the outcome is one of a crash-free run."""
    for number in range(1, await crash_free() + 1):
        await crash_at(Fault("crash", at=number, when="after" if when == "after" else "before"))


async def crash_at(fault: Fault) -> None:
    """Run with one crash, recover on another node, and check."""
    net = Net()
    first, run_id = await perform(net, [fault])
    if first is not None:
        assert first.faults.crashed.is_set()
        await first.kill()
        net.peers.clear()
    second, again = await perform(net, [])
    assert second is not None
    await net.advance(2.5 * LEASE)
    assert again is not None
    assert run_id in (None, again)
    await check(net, second, again, cut=3)
    await net.close()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_failure_of_any_operation(anyio_backend: object, when: str) -> None:
    """Lesson 9, O2: the same if one operation fails, or only its answer is lost, and the process lives."""
    for number in range(1, await crash_free() + 1):
        await fail_at(Fault("fail", at=number, when="after" if when == "after" else "before"))


async def fail_at(fault: Fault) -> None:
    """Run with one failure of storage, spawn again as a caller would, and check."""
    net = Net()
    await perform(net, [fault])
    await net.advance(2.5 * LEASE)
    peer, run_id = await perform(net, [])
    assert peer is not None
    assert run_id is not None
    await check(net, peer, run_id, cut=3)
    await net.close()
