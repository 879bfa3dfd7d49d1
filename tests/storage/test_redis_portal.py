"""The portal: a caller on trio is served by an asyncio loop in a thread, and notices no difference."""

import asyncio
import threading
from collections.abc import AsyncGenerator

import anyio
import pytest

from rewound.errors import StorageError
from rewound.storage.redis.portal import Portal, current_host

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Run these tests where the portal is needed."""
    return "trio"


@pytest.fixture
async def portal(anyio_backend: str) -> AsyncGenerator[Portal, None]:
    """Run a portal for the test."""
    host = current_host()
    assert isinstance(host, Portal)
    await host.start()
    yield host
    await host.stop()


async def doubled(number: int) -> int:
    """Return twice the number, a turn of the loop later."""
    await asyncio.sleep(0)
    return 2 * number


async def test_results_come_back(portal: Portal) -> None:
    """Each of many callers gets his own."""
    results: dict[int, int] = {}

    async def call(number: int) -> None:
        results[number] = await portal.run(doubled, number)

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(call, number)
    assert results == {number: 2 * number for number in range(100)}


async def test_errors_come_back(portal: Portal) -> None:
    """What is raised over there is raised here."""

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        await portal.run(fail)


async def test_cancelled_caller_abandons_his_call(portal: Portal) -> None:
    """The call is cancelled over there, and the portal serves the next."""
    ended = threading.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    with anyio.move_on_after(0.05):
        await portal.run(hang)
    assert await portal.run(doubled, 1) == 2
    assert ended.wait(5)


async def test_call_that_is_cancelled_over_there_is_an_error_here(portal: Portal) -> None:
    """A foreign cancellation must not look like one of the caller's own."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(StorageError, match="abandoned"):
        await portal.run(cancelled)


async def test_calls_under_way_fail_when_the_portal_stops(anyio_backend: str) -> None:
    """Nobody waits for a thread that has ended."""
    portal = Portal()
    await portal.start()

    async def expect_end() -> None:
        with pytest.raises(StorageError, match="abandoned"):
            await portal.run(asyncio.sleep, 3600)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(expect_end)
        await anyio.wait_all_tasks_blocked()
        await portal.stop()


async def test_messages_are_handed_back_in_order(portal: Portal) -> None:
    """What the other loop calls back runs here, in this thread."""
    got: list[tuple[int, int]] = []
    here = threading.get_ident()

    def note(number: int) -> None:
        got.append((number, threading.get_ident()))

    async def count() -> None:
        for number in range(10):
            portal.back(note)(number)

    await portal.run(count)
    assert got == [(number, here) for number in range(10)]
