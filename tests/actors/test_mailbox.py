"""The mailbox: bounded, in order, with a lane for signals."""

import asyncio
from typing import Any

import anyio
import pytest

from rewound.actors import Mailbox
from rewound.errors import ActorError, ActorStopped

pytestmark = pytest.mark.anyio


async def test_mail_is_delivered_in_order() -> None:
    """Messages come out in the order they were put, all at once."""
    mailbox = Mailbox[int]()
    await mailbox.put(1)
    mailbox.put_nowait(2)
    await mailbox.put(3)
    assert len(mailbox) == 3
    assert await mailbox.drain() == [1, 2, 3]
    assert len(mailbox) == 0


async def test_drain_waits_for_mail() -> None:
    """A drain of an empty mailbox waits, and returns the message that comes."""
    mailbox = Mailbox[str]()
    taken: list[list[str]] = []

    async def read() -> None:
        taken.append(await mailbox.drain())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert taken == []
        mailbox.put_nowait("a")
        mailbox.put_nowait("b")
    assert taken == [["a", "b"]]


@pytest.mark.parametrize("way", ["put", "signal"])
async def test_every_way_in_wakes_the_reader(way: str) -> None:
    """A waiting reader is woken by `put` and by `signal`."""
    mailbox = Mailbox[str]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mailbox.drain)
        await anyio.wait_all_tasks_blocked()
        if way == "put":
            await mailbox.put("a")
        else:
            mailbox.signal("key", "a")
    assert len(mailbox) == 0


async def test_signals_overtake_mail_and_replace_each_other() -> None:
    """Signals are delivered first; the newest of a key stands in the place of the oldest."""
    mailbox = Mailbox[str](capacity=1)
    await mailbox.put("mail")
    mailbox.signal("a", "a1")
    mailbox.signal("b", "b1")
    mailbox.signal("a", "a2")
    assert list(mailbox) == ["a2", "b1", "mail"]
    assert await mailbox.drain() == ["a2", "b1", "mail"]


async def test_drain_takes_no_more_than_its_limit() -> None:
    """With a limit, signals come first too and the rest stays."""
    mailbox = Mailbox[str]()
    for message in ("x", "y", "z"):
        await mailbox.put(message)
    mailbox.signal("a", "a")
    mailbox.signal("b", "b")
    assert await mailbox.drain(1) == ["a"]
    assert await mailbox.drain(2) == ["b", "x"]
    assert await mailbox.drain(5) == ["y", "z"]


async def test_a_full_mailbox_makes_senders_wait_in_line() -> None:
    """Beyond the capacity `put` waits, `put_nowait` refuses, and waiting senders keep their order."""
    mailbox = Mailbox[int](capacity=2)
    async with anyio.create_task_group() as tasks:
        for message in range(5):
            tasks.start_soon(mailbox.put, message, name=str(message))
            await anyio.wait_all_tasks_blocked()
        assert mailbox.full
        with pytest.raises(anyio.WouldBlock):
            mailbox.put_nowait(9)
        for expected in ([0, 1], [2, 3], [4]):
            assert await mailbox.drain() == expected
            await anyio.wait_all_tasks_blocked()


async def test_nobody_overtakes_a_waiting_sender() -> None:
    """Room that was made for a waiting sender is not taken by one that comes later."""
    mailbox = Mailbox[str](capacity=1)
    await mailbox.put("first")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mailbox.put, "waiting")
        await anyio.wait_all_tasks_blocked()
        assert await mailbox.drain() == ["first"]
        with pytest.raises(anyio.WouldBlock):
            mailbox.put_nowait("late")
    assert await mailbox.drain() == ["waiting"]


async def test_a_cancelled_put_leaves_nothing_and_passes_its_turn_on() -> None:
    """The message of a cancelled sender is not delivered; the sender behind it gets in."""
    mailbox = Mailbox[str](capacity=1)
    await mailbox.put("first")
    scope = anyio.CancelScope()

    async def give_up() -> None:
        with scope:
            await mailbox.put("cancelled")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(give_up)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(mailbox.put, "next")
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert await mailbox.drain() == ["first"]
    assert await mailbox.drain() == ["next"]


async def test_a_put_cancelled_when_its_turn_has_come_leaves_nothing(anyio_backend_name: str) -> None:
    """`Task.cancel` may hit a sender that was woken already: its message stays out, its turn goes on."""
    if anyio_backend_name == "trio":
        pytest.skip("trio never cancels a task that was woken")
    mailbox = Mailbox[str](capacity=1)
    await mailbox.put("first")
    cancelled = asyncio.create_task(mailbox.put("cancelled"))
    await anyio.wait_all_tasks_blocked()
    behind = asyncio.create_task(mailbox.put("behind"))
    await anyio.wait_all_tasks_blocked()
    assert await mailbox.drain() == ["first"]
    cancelled.cancel()
    await behind
    assert cancelled.cancelled()
    assert await mailbox.drain() == ["behind"]


async def test_a_cancelled_drain_takes_nothing() -> None:
    """Mail that arrives for a reader that is cancelled stays for the next."""
    mailbox = Mailbox[str]()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await mailbox.drain()
    await mailbox.put("kept")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await mailbox.drain()
    assert await mailbox.drain() == ["kept"]


async def test_close_returns_what_was_not_delivered() -> None:
    """Closing hands back signals and mail, and every way in is refused by name."""
    mailbox = Mailbox[str](owner="till")
    await mailbox.put("mail")
    mailbox.signal("key", "signal")
    assert mailbox.close() == ["signal", "mail"]
    assert mailbox.closed
    assert mailbox.close() == []
    with pytest.raises(ActorStopped, match="'till' has stopped"):
        mailbox.put_nowait("x")
    with pytest.raises(ActorStopped, match="'till' has stopped"):
        mailbox.signal("key", "x")
    with pytest.raises(ActorStopped):
        await mailbox.put("x")
    assert await mailbox.drain() == []


async def test_close_wakes_reader_and_senders() -> None:
    """A waiting drain returns nothing; every waiting put is told that the actor stopped."""
    idle, full = Mailbox[int](), Mailbox[int](capacity=1)
    await full.put(0)
    heard: list[Any] = []

    async def read() -> None:
        heard.append(await idle.drain())

    async def send(message: int) -> None:
        with pytest.raises(ActorStopped):
            await full.put(message)
        heard.append(message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(send, 1)
        tasks.start_soon(send, 2)
        await anyio.wait_all_tasks_blocked()
        idle.close()
        assert full.close() == [0]
    assert sorted(heard, key=str) == [1, 2, []]


async def test_a_mailbox_has_one_reader() -> None:
    """A second task that would wait for the same mail is refused."""
    mailbox = Mailbox[int]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mailbox.drain)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(ActorError, match="one task may drain it"):
            await mailbox.drain()
        tasks.cancel_scope.cancel()


def test_a_mailbox_holds_at_least_one_message() -> None:
    """There is no mailbox of capacity zero, and none without a bound."""
    with pytest.raises(ValueError, match="capacity=0"):
        Mailbox[int](capacity=0)
