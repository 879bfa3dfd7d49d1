"""A node that cannot renew its lease stops acting on its runs, and comes back under a new id."""

import pytest

from rewound import Completed, Runtime, RuntimeClosed
from rewound.storage import MemoryStorage
from rewound.storage.faults import Fault
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Solo

pytestmark = pytest.mark.anyio


async def test_a_node_whose_lease_is_gone_takes_a_new_id(net: Net, stage: Stage) -> None:
    """Architecture 4: expiry is final; the node drops its owners and claims its runs again at once."""
    peer = await net.peer(Solo)
    stage.close("a")
    run = await peer.runtime.spawn(Solo())
    await net.settle()
    node = peer.node
    await net.memory.leave(node)
    await net.advance(LEASE)
    assert peer.node != node
    assert (stage.times("a"), stage.overlaps) == (2, [])
    stage.open("a")
    assert await run.result(timeout=1) == "a"


async def test_fencing_before_the_lease_would_expire(net: Net, stage: Stage) -> None:
    """Architecture 5.6: a node that cannot reach storage stops its bodies before others may start them."""
    stage.close("a")
    hang = [Fault("hang", at=number, method="renew") for number in range(1, 9)]
    peer = await net.peer(Solo, plan=hang)
    await peer.runtime.spawn(Solo())
    node = peer.node
    await net.advance(LEASE * 0.85)
    assert (peer.node, stage.times("a")) == (node, 1)
    await net.advance(LEASE * 0.1)
    assert peer.node != node
    assert (stage.times("a"), stage.overlaps) == (2, [])


async def test_failing_renewals_are_tried_again(net: Net, stage: Stage) -> None:
    """A heartbeat that fails is no lost lease: it is sent again until the local deadline."""
    fail = [Fault("fail", at=number, method="renew") for number in range(1, 5)]
    peer = await net.peer(Solo, plan=fail)
    stage.close("a")
    run = await peer.runtime.spawn(Solo())
    node = peer.node
    await net.advance(3 * LEASE)
    assert (peer.node, stage.times("a")) == (node, 1)
    stage.open("a")
    assert await run.result(timeout=1) == "a"


async def test_late_writes_are_refused(net: Net, stage: Stage) -> None:
    """Lesson 2: an owner that lost its claim writes nothing; the run has one outcome."""
    stage.close("a")
    slow = await net.peer(Solo, plan=[Fault("hang", at=1, method="append")])
    run = await slow.runtime.spawn(Solo())
    await net.settle()
    stage.open("a")
    await net.settle()
    await net.memory.leave(slow.node)  # as if its process had been stopped for a lease
    other = await net.peer(Solo)
    await net.settle()
    handle = await other.runtime.get(run.id, Solo)
    assert await handle.outcome() == Completed("a")
    ended = await net.records(run.id)
    slow.faults.proceed()
    await net.settle()
    assert await net.records(run.id) == ended
    assert stage.times("a") == 2


async def test_a_lost_claim_ends_the_owner_and_its_bodies(net: Net, stage: Stage) -> None:
    """S11: when the claim is lost, the bodies end and nothing that they return is recorded."""
    stage.close("a", "left")
    slow = await net.peer(Chain)
    run = await slow.runtime.spawn(Chain())
    await net.settle()
    await net.memory.leave(slow.node)
    other = await net.peer(Chain)
    await net.settle()
    assert stage.running["a"] == 2
    await net.advance(LEASE)
    assert stage.running["a"] == 1
    stage.open("a")
    assert await (await other.runtime.get(run.id, Chain)).result(timeout=1) == "c"


async def test_spawn_waits_for_a_lease(net: Net, stage: Stage) -> None:
    """A run that is spawned while the node has no lease starts when it has one again."""
    peer = await net.peer(Solo, plan=[Fault("fail", at=2, method="join")])
    await net.memory.leave(peer.node)
    await net.advance(LEASE / 3 + 0.1)
    assert peer.node == ""
    results: list[str] = []

    async def spawn() -> None:
        results.append(await peer.runtime.run(Solo()))

    async with net.background() as tasks:
        tasks.start_soon(spawn)
        await net.settle()
        assert results == []
        await net.advance(LEASE)
        assert results == ["a"]


async def test_closing_without_a_lease(net: Net) -> None:
    """A node that cannot come back can still be closed; who waited for it is told."""
    plan = [Fault("fail", at=number, method="join") for number in range(2, 1000)]
    peer = await net.peer(Solo, plan=plan)
    await net.memory.leave(peer.node)
    await net.advance(LEASE)
    refused: list[str] = []

    async def spawn() -> None:
        with pytest.raises(RuntimeClosed) as raised:
            await peer.runtime.spawn(Solo())
        refused.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(spawn)
        await net.settle()
        await peer.runtime.close()
        await net.settle()
        assert refused == ["the runtime is closing; it takes no more work"]


async def test_closing_while_the_lease_is_lost(net: Net, stage: Stage) -> None:
    """A node that loses its lease while it drains stops its bodies and leaves."""
    stage.close("a")
    peer = await net.peer(Solo, grace=3 * LEASE)
    await peer.runtime.spawn(Solo())
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.close)
        await net.settle()
        assert stage.running["a"] == 1
        await net.memory.leave(peer.node)
        await net.advance(LEASE)
        assert stage.running["a"] == 0
    with pytest.raises(RuntimeClosed):
        await peer.runtime.spawn(Solo())


async def test_a_stopped_process_is_fenced(net: Net, stage: Stage) -> None:
    """Architecture 5.6: a process that slept through its lease does not act on what it owned before."""
    stage.close("a")
    peer = await net.peer(Solo)
    await peer.runtime.spawn(Solo())
    await net.settle()
    node = peer.node
    net.skip(3 * LEASE)
    await net.advance(LEASE)
    assert peer.node != node
    assert stage.overlaps == []


async def test_default_nodes_never_share_an_id() -> None:
    """Architecture 4: a node id is random per runtime."""
    memory = MemoryStorage()
    async with Runtime(memory), Runtime(memory):
        assert len({node.id for node in await memory.nodes()}) == 2
