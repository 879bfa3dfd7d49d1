"""Waits that are longer than a process lives: distant retries, the timeout of a run."""

import pytest

from rewound import RunFailed
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Later, Solo

pytestmark = pytest.mark.anyio


async def test_a_distant_retry_leaves_memory(net: Net, stage: Stage) -> None:
    """Architecture 2, lesson 12: a run that waits for long has no owner; its alarm brings it back."""
    peer = await net.peer(Later)
    run = await peer.runtime.spawn(Later())
    await net.settle()
    assert peer.services.owners == {}
    await net.advance(3590)
    assert stage.times("a") == 1
    await net.advance(20)
    assert await run.result(timeout=1) == "at last"


async def test_a_distant_retry_survives_a_restart(net: Net, stage: Stage) -> None:
    """Lesson 12: a wait that survives a restart does not start from zero."""
    first = await net.peer(Later)
    run = await first.runtime.spawn(Later())
    await net.advance(1800)
    await first.kill()
    runtime = await net.runtime(Later)
    await net.advance(1790)
    assert stage.times("a") == 1
    await net.advance(20)
    assert await (await runtime.get(run.id, Later)).result(timeout=1) == "at last"


async def test_a_parked_run_hears_a_verb(net: Net, stage: Stage) -> None:
    """Architecture 2: a message brings a parked run back, too."""
    runtime = await net.runtime(Later)
    run = await runtime.spawn(Later())
    await net.settle()
    await run.cancel("never mind")
    assert await net.status(run.id) == "cancelled"


class Timed(Solo, timeout=100):
    """A run that may take a hundred seconds."""


async def test_run_timeout_counts_across_restarts(net: Net, stage: Stage) -> None:
    """S12, lesson 12: a run's timeout is a total; a restart does not begin it again."""
    stage.close("a")
    first = await net.peer(Timed)
    run = await first.runtime.spawn(Timed())
    await net.advance(70)
    await first.kill()
    runtime = await net.runtime(Timed)
    await net.advance(40)
    with pytest.raises(RunFailed, match="longer than its timeout of 100 s"):
        await (await runtime.get(run.id, Timed)).result(timeout=1)


async def test_an_alarm_that_is_not_needed_any_more(net: Net, stage: Stage) -> None:
    """Architecture 4: a run that ends just when it would have been parked leaves no alarm behind."""
    runtime, other = await net.runtime(Later), await net.runtime(Later)
    stage.close("a")
    run = await runtime.spawn(Later())
    await net.settle()
    net.lose_hints("mail")
    async with net.background() as tasks:
        tasks.start_soon(other.cancel, run.id)
        await net.settle()
        stage.open("a")
        await net.settle()
        await net.advance(LEASE)
    journal = await net.memory.load(run.id, limit=0)
    assert journal is not None
    assert (journal.head.status, journal.head.due) == ("cancelled", None)
