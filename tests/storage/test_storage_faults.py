"""The fault plan: what a planned failure, hang or crash looks like to its caller."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from rewound.errors import StorageError
from rewound.storage import Commit, Fault, Faults, Mail, MemoryStorage, Notice
from tests.storage.stores import LEASE, RESET, head_of, new_run, owned

pytestmark = pytest.mark.anyio


async def blocks(operation: Callable[[], Awaitable[Any]]) -> bool:
    """Tell whether a call is still waiting when nothing else happens."""
    ended = anyio.Event()

    async def run() -> None:
        await operation()
        ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    return not ended.is_set()


async def test_trace_names_the_operations() -> None:
    """Without a plan everything passes, and is counted."""
    storage = Faults(MemoryStorage())
    await owned(storage)
    await head_of(storage)
    assert storage.trace == ["join", "create", "load"]
    assert not storage.crashed.is_set()


async def test_failure_before_has_no_effect() -> None:
    """The second operation fails, once, as if the storage could not be reached."""
    storage = Faults(MemoryStorage(), [Fault("fail", at=2)])
    await storage.join("a", LEASE)
    with pytest.raises(StorageError, match="before create"):
        await storage.create(new_run(), "a")
    assert await storage.load("r1") is None


async def test_failure_after_has_taken_effect() -> None:
    """Only the answer is lost; the repeat finds the effect."""
    storage = Faults(MemoryStorage(), [Fault("fail", at=1, when="after", method="append")])
    claim = await owned(storage)
    commit = Commit(claim, "c1", 1, [b"x"])
    with pytest.raises(StorageError, match="after append"):
        await storage.append(commit)
    assert (await head_of(storage)).length == 2
    assert (await storage.append(commit)).length == 2


@pytest.mark.parametrize(("when", "joined"), [("before", False), ("after", True)])
async def test_hanging_operation_waits(when: Any, *, joined: bool) -> None:
    """It hangs before or after its effect, until it is cancelled."""
    storage = Faults(MemoryStorage(), [Fault("hang", at=1, when=when)])
    assert await blocks(lambda: storage.join("a", LEASE))
    assert await storage.renew("a", LEASE) is joined


async def test_hanging_operation_proceeds() -> None:
    """`proceed` lets it finish."""
    storage = Faults(MemoryStorage(), [Fault("hang", at=1)])
    async with anyio.create_task_group() as group:
        group.start_soon(storage.join, "a", LEASE)
        await anyio.wait_all_tasks_blocked()
        storage.proceed()
    assert await storage.renew("a", LEASE)


@pytest.mark.parametrize(("when", "joined"), [("before", False), ("after", True)])
async def test_crash_is_for_ever(when: Any, *, joined: bool) -> None:
    """From the crash on nothing is answered, while the data stays for others."""
    inner = MemoryStorage()
    storage = Faults(inner, [Fault("crash", at=1, when=when)])
    assert await blocks(lambda: storage.join("a", LEASE))
    assert storage.crashed.is_set()
    assert await blocks(storage.now)
    assert await inner.renew("a", LEASE) is joined


async def test_crash_takes_answers_of_calls_in_flight() -> None:
    """A call that was under way when the process died has no caller any more."""
    storage = Faults(MemoryStorage(), [Fault("hang", at=1), Fault("crash", at=2)])
    answered: list[bool] = []

    async def join() -> None:
        await storage.join("a", LEASE)
        answered.append(True)

    async with anyio.create_task_group() as group:
        group.start_soon(join)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(storage.now)
        await anyio.wait_all_tasks_blocked()
        storage.proceed()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert not answered


async def test_crashed_node_hears_nothing() -> None:
    """Its stream of notices is silent after the crash; before, it is as ever."""
    storage = Faults(MemoryStorage(), [Fault("crash", at=1, method="now")])
    await owned(storage, node="a")
    async with storage.notices("a") as stream:
        assert await stream.receive() == RESET
        await storage.post("r1", Mail("m1", b"x", "b"))
        assert await stream.receive() == Notice("mail", "r1")
        assert await blocks(storage.now)
        await storage.inner.post("r1", Mail("m2", b"x", "b"))
        assert await blocks(stream.receive)
        await stream.aclose()
    await storage.close()


async def test_subscribing_is_an_operation() -> None:
    """It can fail like any other."""
    storage = Faults(MemoryStorage(), [Fault("fail", at=1, method="notices")])
    with pytest.raises(StorageError, match="before notices"):
        async with storage.notices("a"):
            pytest.fail("the subscription should fail")
