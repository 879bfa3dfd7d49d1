"""Idempotency keys: at most one run per reactor and key (A7)."""

from functools import partial

import anyio
import pytest

from rewound import DefinitionError, Runtime, StorageError
from rewound.storage.faults import Fault
from rewound.storage.forward import Forward
from rewound.storage.protocol import Created, NewRun
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Solo

pytestmark = pytest.mark.anyio


async def test_ten_tasks_on_two_nodes(net: Net, stage: Stage) -> None:
    """A7, lesson 35: one key, spawned at the same moment by tasks of two nodes, is one run."""
    nodes = [await net.runtime(Solo), await net.runtime(Solo)]
    ids: list[str] = []
    new: list[bool] = []

    async def spawn(runtime: Runtime, number: int) -> None:
        run = await runtime.spawn(Solo(note=str(number)), key="order-17")
        ids.append(run.id)
        new.append(not run.existing)
        assert await run.result() == "a"

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(spawn, nodes[number % 2], number)
    assert (len(set(ids)), new.count(True), stage.times("a")) == (1, 1, 1)


async def test_ten_tasks_on_every_storage(url: str) -> None:
    """A7: the same on every storage."""
    stage = Stage()
    async with (
        Runtime(url, reactors=[Solo], state={"stage": stage}) as one,
        Runtime(url, reactors=[Solo], state={"stage": stage}) as other,
        anyio.create_task_group() as tasks,
    ):
        for number in range(10):
            tasks.start_soon(run_keyed, (one, other)[number % 2])
    assert stage.times("a") == 1


async def run_keyed(runtime: Runtime) -> None:
    """Run one key to its end."""
    assert await (await runtime.spawn(Solo(), key="order-17")).result() == "a"


async def test_the_first_inputs_count(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """A7: the inputs of a repeat are ignored, and it says so if they differ."""
    runtime = await net.runtime(Solo)
    await runtime.spawn(Solo(note="first"), key="k")
    same = await runtime.spawn(Solo(note="first"), key="k")
    other = await runtime.spawn(Solo(note="other"), key="k")
    assert (same.existing, same.inputs_differ) == (True, False)
    assert (other.existing, other.inputs_differ) == (True, True)
    assert [record.levelname for record in caplog.records if "run.existing" in record.message] == ["WARNING"]


async def test_a_key_whose_first_call_stored_nothing(net: Net) -> None:
    """A7, lesson 35: a call that died before the run existed holds no key."""
    runtime = await net.runtime(Solo, plan=[Fault("fail", at=1, method="create")])
    with pytest.raises(StorageError, match="not known whether run"):
        await runtime.spawn(Solo(), key="k")
    run = await runtime.spawn(Solo(), key="k")
    assert not run.existing
    assert await run.result() == "a"


async def test_a_key_whose_first_call_lost_its_answer(net: Net, stage: Stage) -> None:
    """A7, lesson 35: a call that did save its run starts no second one; the run goes on."""
    runtime = await net.runtime(Solo, plan=[Fault("fail", at=1, method="create", when="after")])
    with pytest.raises(StorageError, match="not known whether run"):
        await runtime.spawn(Solo(), key="k")
    run = await runtime.spawn(Solo(), key="k")
    assert run.existing
    await net.advance(LEASE)
    assert await run.result(timeout=1) == "a"
    assert stage.times("a") == 1


async def test_a_create_that_arrives_late(net: Net, stage: Stage) -> None:
    """A create that was given up and takes effect later leaves no orphan: its node finds the run."""
    late = Late(net.memory)
    peer = await net.peer(Solo, storage=late)
    with pytest.raises(StorageError):
        await peer.runtime.spawn(Solo())
    await net.advance(LEASE / 2)
    await late.arrive()
    await net.advance(LEASE / 2)
    assert stage.times("a") == 1


class Late(Forward):
    """A storage whose `create` fails, and takes effect when the test wants it."""

    async def create(self, new: NewRun, node: str | None) -> Created:
        """Keep the call."""
        self.arrive = partial(self.inner.create, new, node)
        raise StorageError("the connection was lost")


async def test_a_create_that_never_arrives_is_forgotten(net: Net) -> None:
    """A claim on a run that does not come into being is kept for two leases, not for ever."""
    peer = await net.peer(Solo, plan=[Fault("fail", at=1, method="create")])
    with pytest.raises(StorageError):
        await peer.runtime.spawn(Solo())
    assert len(peer.services.claims) == 1
    await net.advance(3 * LEASE)
    assert peer.services.claims == {}


async def test_a_run_that_expired_frees_its_key(net: Net, stage: Stage) -> None:
    """A7: a key belongs to its run for as long as the run is kept."""
    runtime = await net.runtime(Solo, retention=5)
    await (await runtime.spawn(Solo(), key="k")).result()
    await net.advance(LEASE)
    again = await runtime.spawn(Solo(), key="k")
    assert not again.existing
    assert await again.result() == "a"


@pytest.mark.parametrize("key", ["", 17, b"k", "\ud800"])
async def test_keys_are_text(net: Net, key: object) -> None:
    """A key is text that can be stored."""
    runtime = await net.runtime(Solo)
    with pytest.raises(DefinitionError, match="a key is text"):
        await runtime.spawn(Solo(), key=key)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
