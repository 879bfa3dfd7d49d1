"""Notices inside a process: coalesced, bounded, ended."""

import anyio
import pytest

from rewound.storage import Notice
from rewound.storage.hub import MOST_PENDING, Hub
from tests.storage.stores import RESET

pytestmark = pytest.mark.anyio

CHANGED = Notice("changed", "r1")


async def test_same_notice_waits_once() -> None:
    """A hint that was not read yet is not repeated."""
    async with Hub().subscribe("a") as stream:
        for _ in range(3):
            stream.deliver(CHANGED)
        stream.end()
        assert [notice async for notice in stream] == [RESET, CHANGED]


async def test_slow_reader_gets_a_reset() -> None:
    """What waits is bounded; beyond, it becomes one reset."""
    async with Hub().subscribe("a") as stream:
        for number in range(MOST_PENDING):
            stream.deliver(Notice("changed", str(number)))
        stream.end()
        assert [notice async for notice in stream] == [RESET]


async def test_every_stream_of_a_node_is_served() -> None:
    """Two subscriptions of one node hear the same; after one is left, the other still does."""
    hub = Hub()
    async with hub.subscribe("a") as one:
        async with hub.subscribe("a") as two:
            hub.deliver("a", CHANGED)
            hub.deliver("b", CHANGED)
            assert [await two.receive(), await two.receive()] == [RESET, CHANGED]
        hub.deliver("a", Notice("mail", "r2"))
        hub.end()
        assert [notice async for notice in one] == [RESET, CHANGED, Notice("mail", "r2")]
    assert hub.nodes == []


async def test_waiting_reader_is_told_of_the_end() -> None:
    """A reader that waits when the storage closes gets `EndOfStream`."""
    hub = Hub()
    async with hub.subscribe("a") as stream:
        assert await stream.receive() == RESET
        async with anyio.create_task_group() as group:

            async def read() -> None:
                with pytest.raises(anyio.EndOfStream):
                    await stream.receive()

            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            hub.end()
