"""Slots: a bound that callbacks and tasks share fairly."""

import asyncio
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewound.actors import Slots
from rewound.errors import ActorError

pytestmark = pytest.mark.anyio


def test_take_grants_what_is_free() -> None:
    """No more is granted than asked for, nor than there is."""
    slots = Slots(3)
    assert slots.take(2) == 2
    assert slots.take(2) == 1
    assert slots.take() == 0
    assert (slots.in_use, slots.limit) == (3, 3)
    slots.give(2)
    assert slots.take(5) == 2


def test_callbacks_are_served_in_order_with_a_slot_each() -> None:
    """A freed slot is taken for the longest waiting callback before it is called."""
    slots = Slots(1)
    seen: list[tuple[str, int]] = []

    def note(name: str) -> None:
        seen.append((name, slots.in_use))

    for name in "abc":
        slots.wait(partial(note, name))
    assert seen == [("a", 1)]
    assert repr(slots) == "<Slots: 1 of 1 in use, 2 waiting>"
    slots.give()
    slots.give()
    assert seen == [("a", 1), ("b", 1), ("c", 1)]
    assert slots.in_use == 1


def test_nobody_overtakes_those_who_wait() -> None:
    """While callbacks wait, `take` gets nothing, even from within a callback."""
    slots = Slots(2)
    assert slots.take(2) == 2
    taken: list[int] = []
    slots.wait(lambda: taken.append(slots.take()))
    slots.wait(lambda: taken.append(slots.take()))
    slots.give(2)
    assert taken == [0, 0]


def test_a_cancelled_wait_is_not_called() -> None:
    """`cancel` tells whether it came in time; a slot that was granted stays granted."""
    slots = Slots(1)
    called: list[str] = []
    granted = slots.wait(lambda: called.append("granted"))
    waiting = slots.wait(lambda: called.append("waiting"))
    assert waiting.cancel()
    assert not waiting.cancel()
    assert not granted.cancel()
    slots.give()
    assert called == ["granted"]
    assert slots.in_use == 0


def test_a_raising_callback_loses_its_slot_to_the_next(caplog: pytest.LogCaptureFixture) -> None:
    """The error is logged, the slot is not lost."""
    slots = Slots(1)
    slots.take()
    slots.wait(lambda: 1 // 0)
    called: list[bool] = []
    slots.wait(lambda: called.append(True))
    slots.give()
    assert called == [True]
    assert slots.in_use == 1
    assert "the callback of a granted slot raised" in caplog.text


def test_a_callback_may_give_its_slot_back() -> None:
    """Giving back from within a callback serves the next one; a long queue does not nest."""
    slots = Slots(1)
    slots.take()
    called: list[int] = []

    def use(number: int) -> None:
        called.append(number)
        slots.give()

    for number in range(5000):
        slots.wait(partial(use, number))
    slots.give()
    assert called == list(range(5000))
    assert slots.in_use == 0


def test_more_cannot_be_given_than_was_taken() -> None:
    """A duplicate give-back is an error, and changes nothing."""
    slots = Slots(2)
    slots.take()
    with pytest.raises(ActorError, match="2 slots were given back, but only 1 are in use"):
        slots.give(2)
    assert slots.in_use == 1


def test_there_is_at_least_one_slot() -> None:
    """A limit of zero would make everybody wait for ever."""
    with pytest.raises(ValueError, match="limit=0"):
        Slots(0)


async def test_tasks_and_callbacks_stand_in_one_line() -> None:
    """`acquire` waits its turn behind callbacks that came first, and before those that came later."""
    slots = Slots(1)
    order: list[str] = []
    await slots.acquire()

    async def task() -> None:
        await slots.acquire()
        order.append("task")
        slots.release()

    slots.wait(lambda: order.append("before"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task)
        await anyio.wait_all_tasks_blocked()
        slots.wait(lambda: order.append("after"))
        slots.release()
        slots.give()
    assert order == ["before", "task", "after"]


async def test_a_cancelled_acquire_holds_no_slot() -> None:
    """Cancelled while it waits, or before it began, it has taken nothing."""
    slots = Slots(1)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await slots.acquire()
    assert slots.in_use == 0
    slots.take()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slots.acquire)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert slots.waiting == 0
    slots.give()
    assert slots.in_use == 0


async def test_an_acquire_cancelled_when_it_was_granted_gives_back(anyio_backend_name: str) -> None:
    """`Task.cancel` may hit a task that was granted a slot already: the next in line gets it."""
    if anyio_backend_name == "trio":
        pytest.skip("trio never cancels a task that was woken")
    slots = Slots(1)
    slots.take()
    cancelled = asyncio.create_task(slots.acquire())
    await anyio.wait_all_tasks_blocked()
    behind = asyncio.create_task(slots.acquire())
    await anyio.wait_all_tasks_blocked()
    slots.give()
    cancelled.cancel()
    await behind
    assert cancelled.cancelled()
    assert slots.in_use == 1


operations = st.one_of(
    st.tuples(st.just("take"), st.integers(1, 4)),
    st.tuples(st.just("give"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.just(0)),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limit=st.integers(1, 4), steps=st.lists(operations, max_size=30))
def test_slots_are_counted_right_whatever_happens(limit: int, steps: list[tuple[str, int]]) -> None:
    """Never over the limit, never idle while somebody waits, always in the order of waiting."""
    slots = Slots(limit)
    waits: dict[int, Any] = {}
    granted: list[int] = []
    for number, (name, count) in enumerate(steps):
        if name == "take":
            slots.take(count)
        elif name == "give":
            slots.give(min(count, slots.in_use))
        elif name == "wait":
            waits[number] = slots.wait(partial(granted.append, number))
        elif count < len(waits):
            chosen = list(waits)[count]
            assert waits[chosen].cancel() == (chosen not in granted)
            del waits[chosen]
        assert slots.in_use <= limit
        assert slots.waiting == 0 or slots.in_use == limit
        assert granted == sorted(granted)
        assert slots.waiting == len([number for number in waits if number not in granted])
