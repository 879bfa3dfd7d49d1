"""Leaving a runtime: bodies get their grace, runs are given up, and it always comes to an end."""

import anyio
import pytest

from rewound import Reactor, Runtime, RuntimeClosed, step
from rewound.storage.faults import Fault
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Fork, Solo, Stagehand
from tests.runtime.servers import Changing

pytestmark = pytest.mark.anyio


async def test_bodies_finish_within_the_grace(net: Net, stage: Stage) -> None:
    """Architecture 5.5: what is in flight may finish and is recorded; nothing more starts."""
    peer = await net.peer(Chain, grace=5)
    stage.close("a")
    run = await peer.runtime.spawn(Chain())
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        await net.advance(4)
        stage.open("a")
    assert stage.log == ["a"]
    runtime = await net.runtime(Chain)
    assert await (await runtime.get(run.id, Chain)).result() == "c"
    assert stage.times("a") == 1


async def test_beyond_the_grace_bodies_are_cut_and_run_again(net: Net, stage: Stage) -> None:
    """Architecture 5.5: what takes longer is cancelled, and runs again elsewhere."""
    peer = await net.peer(Chain, grace=5)
    stage.close("b")
    run = await peer.runtime.spawn(Chain())
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        await net.advance(4)
        assert stage.running["b"] == 1
        await net.advance(2)
        assert stage.running["b"] == 0
    stage.open("b")
    runtime = await net.runtime(Chain)
    assert await (await runtime.get(run.id, Chain)).result() == "c"
    assert stage.log == ["a", "b", "b", "c"]


async def test_a_rollback_is_handed_over(net: Net, stage: Stage) -> None:
    """Architecture 5.5: an undo that was cut runs again elsewhere; the one behind it waits for it."""
    peer = await net.peer(Fork)
    stage.errors["join"] = RuntimeError("no")
    stage.close("undo a")
    run = await peer.runtime.spawn(Fork())
    await net.settle()
    await peer.runtime.close()
    stage.open("undo a")
    runtime = await net.runtime(Fork)
    outcome = await (await runtime.get(run.id, Fork)).outcome()
    assert outcome.rollback_failures == []
    assert stage.log[-2:] == ["undo a", "undo a"]


async def test_no_work_while_closing(net: Net, stage: Stage) -> None:
    """Architecture 5.5: a runtime that closes takes no work, and takes over no run."""
    first = await net.peer(Solo)
    stage.close("a")
    await first.runtime.spawn(Solo())
    await net.settle()
    peer = await net.peer(Chain, Solo, grace=50)
    stage.close("b")
    await peer.runtime.spawn(Chain())
    stage.open("a")
    await net.settle()
    stage.close("a")
    await first.runtime.spawn(Solo())
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        await net.settle()
        with pytest.raises(RuntimeClosed, match="closing"):
            await peer.runtime.spawn(Chain())
        await first.kill()
        await net.advance(3 * LEASE)
        assert stage.running["a"] == 0
        assert "claim" not in peer.faults.trace
        stage.open("b", "a")


async def test_mail_during_the_grace_is_answered(net: Net, stage: Stage) -> None:
    """Architecture 4: an owner that is on its way out still answers verbs; a cut body ends at once."""
    peer, other = await net.peer(Chain, grace=50), await net.runtime(Chain)
    stage.close("b")
    run = await peer.runtime.spawn(Chain())
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        await net.settle()
        await other.undo(run.id)
        await net.advance(LEASE)
        assert await net.status(run.id) == "cancelled"
    assert stage.log == ["a", "b", "compensate b", "undo a"]


async def test_mail_that_came_just_before_the_release(net: Net, stage: Stage) -> None:
    """Architecture 4: a run is not given up while mail is unread."""
    peer, other = await net.peer(Chain, grace=50, plan=[]), await net.runtime(Chain)
    stage.close("a")
    run = await peer.runtime.spawn(Chain())
    await net.settle()
    net.lose_hints("mail")
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        tasks.start_soon(other.cancel, run.id)
        await net.settle()
        stage.open("a")
        await net.settle()
        await net.advance(LEASE)
        assert await net.status(run.id) == "cancelled"


class Deaf(Reactor[None]):
    """A step that swallows its cancellation."""

    @step
    async def a(self, ctx: Stagehand) -> None:
        """Wait for the gate, whatever happens."""
        ctx.state["log"].append("a")
        gate: anyio.Event = ctx.state["gate"]
        while not gate.is_set():
            with anyio.CancelScope(shield=True):
                await gate.wait()


async def test_a_body_that_swallows_cancellation(
    net: Net, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Lesson 41: such a body delays a shutdown up to the grace; it neither hangs it nor makes it spin."""
    gate = anyio.Event()
    peer = await net.peer(Deaf, grace=2, state={"gate": gate})
    run = await peer.runtime.spawn(Deaf())
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        await net.advance(5)
    told = [record.getMessage() for record in caplog.records if "abandoned" in record.message]
    assert told == [
        f'rewound.run.abandoned runs="[\\"Deaf {run.id}\\"]" reason="a step ignores its cancellation"'
    ]
    gate.set()
    await net.settle()


async def test_spawning_while_another_closes(net: Net, stage: Stage) -> None:
    """A spawn that waited for room in a runtime that closes is refused, by name."""
    peer = await net.peer(Solo, grace=5, max_owners=1)
    stage.close("a")
    await peer.runtime.spawn(Solo())
    refused: list[str] = []

    async def spawn() -> None:
        with pytest.raises(RuntimeClosed) as raised:
            await peer.runtime.spawn(Solo())
        refused.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(spawn)
        await net.settle()
        tasks.start_soon(peer.runtime.close)
        await net.settle()
        assert len(refused) == 1
        stage.open("a")


async def test_a_run_created_while_closing_is_handed_over(net: Net, stage: Stage) -> None:
    """A run whose creation was under way when the runtime closed is given up at once, and not lost."""
    peer = await net.peer(Solo, grace=5, plan=[Fault("hang", at=1, method="create")])
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.spawn, Solo())
        await net.settle()
        tasks.start_soon(peer.runtime.close)
        await net.settle()
        peer.faults.proceed()
        await net.advance(1)
    runtime = await net.runtime(Solo)
    await net.settle()
    (summary,) = [each async for each in runtime.runs()]
    assert await (await runtime.get(summary.run_id, Solo)).result() == "a"


async def test_close_is_idempotent(net: Net) -> None:
    """`close` may be called again, and by several tasks at once."""
    runtime = await net.runtime(Solo)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.close)
        tasks.start_soon(runtime.close)
    await runtime.close()


async def test_entering_twice(net: Net) -> None:
    """A runtime that is entered cannot be entered again meanwhile; afterwards it can."""
    runtime = await net.runtime(Solo)
    with pytest.raises(RuntimeClosed, match="entered already"):
        await runtime.__aenter__()
    await runtime.close()
    async with runtime:
        assert await runtime.run(Solo()) == "a"


async def test_an_unclosed_runtime_warns() -> None:
    """Lesson 43: a runtime that was entered and never left says so when it is collected."""
    runtime = Runtime(reactors=[Solo])
    await runtime.__aenter__()
    host = vars(runtime)["_host"]
    kept = [runtime]
    del runtime
    with pytest.warns(ResourceWarning, match="was not closed; use `async with`"):
        kept.clear()
    host.cancel()
    await host._ended.wait()


async def test_a_crash_of_the_node_is_told(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """A runtime that cannot go on refuses work, wakes who waits, and raises the reason when it is left."""
    server = Changing(net.memory)
    runtime = await net.runtime(Solo, storage=server)
    net.stage.close("a")
    run = await runtime.spawn(Solo())
    told: list[str] = []

    async def wait() -> None:
        with pytest.raises(RuntimeClosed):
            await run.result()
        told.append("closed")

    async with net.background() as tasks:
        tasks.start_soon(wait)
        await net.settle()
        server.bug = ZeroDivisionError()
        await net.advance(LEASE)
        assert told == ["closed"]
    with pytest.raises(RuntimeClosed, match="crashed"):
        await runtime.spawn(Solo())
    assert "rewound.claim.crashed" in caplog.text
    with pytest.raises(ExceptionGroup):
        await runtime.close()


class Tidy(Reactor[str]):
    """A step with a timeout that tidies up when it is cut."""

    @step(timeout=8)
    async def a(self, ctx: Stagehand) -> str:
        """Wait the first time, and tidy up for as long as the gate is shut."""
        if ctx.state["log"]:
            return "done"
        ctx.state["log"].append("a")
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ctx.state["stage"].act("tidy up")
        return "never"


async def test_a_cut_body_is_not_late(net: Net, stage: Stage) -> None:
    """Architecture 5.5, S12: a body that was cut by a shutdown has not failed, however long it tidies up."""
    peer = await net.peer(Tidy, grace=5)
    stage.close("tidy up")
    run = await peer.runtime.spawn(Tidy())
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        await net.advance(9)
        stage.open("tidy up")
        await net.settle()
    runtime = await net.runtime(Tidy)
    assert await (await runtime.get(run.id, Tidy)).result() == "done"
