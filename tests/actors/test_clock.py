"""Clocks and their alarms."""

import logging
import weakref
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from rewound.actors import Alarm, Clock, SystemClock, VirtualClock

pytestmark = pytest.mark.anyio


async def test_alarms_fire_in_order_of_time_then_of_setting(virtual_clock: VirtualClock) -> None:
    """Alarms ring when time reaches them, the earliest first; equal ones as they were set."""
    rang: list[tuple[str, float]] = []

    def ring(name: str) -> None:
        rang.append((name, virtual_clock.now()))

    for name, at in (("late", 9.0), ("b", 2.0), ("c", 2.0), ("a", 1.0)):
        virtual_clock.alarm(at, partial(ring, name))
    await virtual_clock.advance(2.0)
    assert rang == [("a", 1.0), ("b", 2.0), ("c", 2.0)]
    await virtual_clock.advance(7.0)
    assert rang[-1] == ("late", 9.0)


async def test_a_cancelled_alarm_does_not_ring(virtual_clock: VirtualClock) -> None:
    """Cancelling an alarm takes it back; doing so again, or after it rang, is harmless."""
    rang: list[str] = []
    kept = virtual_clock.alarm(1.0, lambda: rang.append("kept"))
    gone = virtual_clock.alarm(1.0, lambda: rang.append("gone"))
    gone.cancel()
    gone.cancel()
    gone.ring()
    await virtual_clock.advance(1.0)
    kept.cancel()
    assert rang == ["kept"]
    assert (kept.pending, gone.pending) == (False, False)


async def test_cancelled_alarms_are_not_kept(virtual_clock: VirtualClock) -> None:
    """A program that sets and cancels many far deadlines does not hold them until their time comes."""
    refs: list[weakref.ref[Alarm]] = []
    virtual_clock.alarm(1e9, list)
    for _ in range(200):
        alarm = virtual_clock.alarm(1e9, list)
        refs.append(weakref.ref(alarm))
        alarm.cancel()
    assert repr(virtual_clock) == "<VirtualClock at 0 with 1 alarms>"
    assert sum(ref() is not None for ref in refs) < 100


async def test_the_callback_of_an_alarm_may_raise(
    virtual_clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A raising callback is logged and the next alarm rings all the same."""
    rang: list[str] = []
    virtual_clock.alarm(1.0, lambda: 1 // 0)
    virtual_clock.alarm(2.0, lambda: rang.append("next"))
    await virtual_clock.advance(3.0)
    assert rang == ["next"]
    assert "ZeroDivisionError" in caplog.text


async def test_a_ringing_alarm_can_cancel_another_of_its_instant(virtual_clock: VirtualClock) -> None:
    """An alarm cancelled by one that rings before it, at the same time, stays silent."""
    rang: list[str] = []
    later: list[Alarm] = []

    def cancel_the_later() -> None:
        later[0].cancel()

    virtual_clock.alarm(1.0, cancel_the_later)
    later.append(virtual_clock.alarm(1.0, lambda: rang.append("second")))
    await virtual_clock.advance(1.0)
    assert rang == []


async def test_an_alarm_cannot_be_due_at_nan(virtual_clock: VirtualClock) -> None:
    """NaN has no place in an order of times; it is refused by name."""
    with pytest.raises(ValueError, match="NaN"):
        virtual_clock.alarm(float("nan"), list)


async def test_sleepers_wake_at_their_time(virtual_clock: VirtualClock) -> None:
    """What a woken sleeper does happens at the time it asked for, before later sleepers wake."""
    log: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await virtual_clock.sleep(seconds)
        await checkpoint()
        log.append((name, virtual_clock.now()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleeper, "second", 2.0)
        tasks.start_soon(sleeper, "first", 1.0)
        await anyio.wait_all_tasks_blocked()
        await virtual_clock.advance(5.0)
    assert log == [("first", 1.0), ("second", 2.0)]
    assert virtual_clock.now() == 5.0


async def test_a_cancelled_sleeper_leaves_no_alarm(virtual_clock: VirtualClock) -> None:
    """Cancelling a sleep takes its alarm back."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(virtual_clock.sleep, 10.0)
        await anyio.wait_all_tasks_blocked()
        assert repr(virtual_clock) == "<VirtualClock at 0 with 1 alarms>"
        tasks.cancel_scope.cancel()
    assert repr(virtual_clock) == "<VirtualClock at 0 with 0 alarms>"


@pytest.mark.parametrize("clock", [SystemClock(), VirtualClock()])
async def test_sleeping_for_no_time_returns(clock: Clock) -> None:
    """A time that has passed is waited for by no one."""
    await clock.sleep(0)
    await clock.sleep_until(clock.now() - 1)


async def test_virtual_time_moves_only_forward(virtual_clock: VirtualClock) -> None:
    """`time` moves with `now`; a negative step is refused."""
    before = virtual_clock.time()
    await virtual_clock.advance(3.5)
    await virtual_clock.run_alarms()
    assert virtual_clock.time() - before == 3.5
    with pytest.raises(ValueError, match="back by 1"):
        await virtual_clock.advance(-1)


async def test_the_system_clock_rings_a_nearer_alarm_first() -> None:
    """An alarm set while the clock waits for a later one is not held up by it."""
    clock = SystemClock()
    rang: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run_alarms)
        clock.alarm(clock.now() + 3600, lambda: rang.append("far"))
        await anyio.wait_all_tasks_blocked()

        def near() -> None:
            rang.append("near")
            tasks.cancel_scope.cancel()

        clock.alarm(clock.now(), near)
    assert rang == ["near"]


async def test_the_system_clock_outlives_a_raising_callback(caplog: pytest.LogCaptureFixture) -> None:
    """The task of the alarms survives what a callback raises."""
    clock = SystemClock()
    rang = anyio.Event()
    clock.alarm(clock.now(), lambda: 1 // 0)
    clock.alarm(clock.now(), rang.set)
    with caplog.at_level(logging.ERROR, "rewound.actors"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.run_alarms)
            await rang.wait()
            tasks.cancel_scope.cancel()
    assert "the callback of an alarm raised" in caplog.text


async def test_two_tasks_may_serve_one_clock() -> None:
    """An alarm rings once, whoever serves it, and still when one of the two has gone."""
    clock = SystemClock()
    rang: list[int] = []
    done = anyio.Event()
    async with anyio.create_task_group() as both:
        both.start_soon(clock.run_alarms)
        async with anyio.create_task_group() as one:
            one.start_soon(clock.run_alarms)
            await anyio.wait_all_tasks_blocked()
            clock.alarm(clock.now(), lambda: rang.append(1))
            await anyio.wait_all_tasks_blocked()
            one.cancel_scope.cancel()
        clock.alarm(clock.now(), done.set)
        await done.wait()
        both.cancel_scope.cancel()
    assert rang == [1]


async def test_the_system_clock_never_wakes_a_sleeper_early() -> None:
    """`sleep_until` returns at its time or later, also where the loop rounds to milliseconds."""
    clock = SystemClock()
    at = clock.now() + 0.0014
    await clock.sleep_until(at)
    assert clock.now() >= at
    assert clock.time() > 1_700_000_000
