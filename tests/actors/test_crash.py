"""Crashes: isolation, restarts with a limit, giving up."""

from typing import Any

import anyio
import pytest

from rewound.actors import Actor, Letter, Supervisor, VirtualClock
from rewound.errors import ActorStopped
from tests.actors.parts import Adder, GivenUp

pytestmark = pytest.mark.anyio


async def test_a_crash_touches_no_sibling(caplog: pytest.LogCaptureFixture) -> None:
    """One actor ends by its error, which is logged with its key; the others and the block go on."""
    lost = GivenUp()
    async with Supervisor(on_give_up=lost.note) as supervisor:
        bad, good = supervisor.start(Adder("bad")), supervisor.start(Adder("good"))
        await bad.tell(0)
        await bad.wait()
        assert await good.ask(1) == 1
    assert lost.keys == ["bad"]
    assert "actor 'bad' crashed and is not restarted" in caplog.text
    assert "ValueError: zero crashes" in caplog.text


async def test_the_key_is_free_when_an_actor_is_given_up() -> None:
    """`on_give_up` may start another actor in its place; what it raises is logged."""

    def replace(key: Any, error: Exception) -> None:
        supervisor.start(Adder(key))

    async with Supervisor(on_give_up=replace) as supervisor:
        first = supervisor.start(Adder())
        await first.tell(0)
        await first.wait()
        await anyio.wait_all_tasks_blocked()
        second = supervisor.find("adder")
        assert second is not None
        assert second is not first
        assert await second.ask(1) == 1


async def test_a_raising_give_up_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The host's callback cannot take the supervisor down."""

    def fail(key: Any, error: Exception) -> None:
        raise RuntimeError("of the callback")

    async with Supervisor(on_give_up=fail) as supervisor:
        ref = supervisor.start(Adder())
        await ref.tell(0)
        await ref.wait()
    assert "on_give_up('adder', ValueError('zero crashes')) raised" in caplog.text


async def test_every_end_is_reported_once(virtual_clock: VirtualClock) -> None:
    """`on_end` hears of a stop, a kill, a crash and a cancelled block; not of a restart."""
    log: list[str] = []
    with anyio.CancelScope() as scope:
        async with Supervisor(
            clock=virtual_clock,
            on_end=lambda key: log.append(f"{key} ended"),
            on_give_up=lambda key, _error: log.append(f"{key} given up"),
        ) as supervisor:
            for key in ("stopped", "killed", "crashed", "cancelled"):
                supervisor.start(Adder(key))
            restarted = supervisor.start(Adder("restarted"), factory=Adder)
            await supervisor.stop("stopped")
            supervisor.kill("killed")
            await anyio.wait_all_tasks_blocked()
            for key in ("crashed", "restarted"):
                ref = supervisor.find(key)
                assert ref is not None
                await ref.tell(0)
            await virtual_clock.advance(1)
            assert restarted.alive
            assert log == ["stopped ended", "killed ended", "crashed ended", "crashed given up"]
            scope.cancel()
            await anyio.sleep_forever()
    assert sorted(log[4:]) == ["cancelled ended", "restarted ended"]


async def test_a_factory_restarts_the_actor(virtual_clock: VirtualClock) -> None:
    """A fresh actor takes the key, the reference and the unread mail; only the bad message is lost."""
    async with Supervisor(clock=virtual_clock, backoff=0.5) as supervisor:
        ref = supervisor.start(Adder(), factory=Adder)
        for message in (10, 0, 1, 2):
            await ref.tell(message)
        await anyio.wait_all_tasks_blocked()
        await ref.tell(3)
        assert ref.alive
        await virtual_clock.advance(0.5)
        assert await ref.ask(4) == 1 + 2 + 3 + 4


async def test_mail_that_was_asked_before_a_crash_is_answered_after_it(virtual_clock: VirtualClock) -> None:
    """Asks that the crashed actor had not begun are answered by the next one."""
    answers: list[Any] = []
    async with Supervisor(clock=virtual_clock) as supervisor, anyio.create_task_group() as tasks:
        ref = supervisor.start(Adder(), factory=Adder)
        await ref.tell(0)

        async def ask(message: int) -> None:
            answers.append(await ref.ask(message))

        tasks.start_soon(ask, 5)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        await virtual_clock.advance(1)
    assert answers == [5]


async def test_an_ask_that_the_crashed_actor_held_fails(virtual_clock: VirtualClock) -> None:
    """Letters that an actor kept for later die with it, and their askers are told why."""

    class Keeper(Actor[str]):
        key = "keeper"

        async def handle(self, letters: list[Letter[str]]) -> None:
            self.kept = letters
            if letters[0].message == "crash":
                raise ValueError("on demand")

    async with Supervisor(clock=virtual_clock) as supervisor, anyio.create_task_group() as tasks:
        ref = supervisor.start(Keeper(), factory=Keeper)

        async def ask() -> None:
            with pytest.raises(ActorStopped, match="'keeper' crashed before it answered") as caught:
                await ref.ask("kept")
            assert isinstance(caught.value.__cause__, ValueError)

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await ref.tell("crash")


async def test_restarts_are_limited_and_their_pause_doubles(virtual_clock: VirtualClock) -> None:
    """After so many restarts within the window the actor is given up."""
    lost = GivenUp()
    starts: list[float] = []

    class Broken(Adder):
        async def started(self) -> None:
            starts.append(virtual_clock.now())
            raise ValueError("cannot start")

    async with Supervisor(clock=virtual_clock, restarts=3, backoff=1, on_give_up=lost.note) as supervisor:
        ref = supervisor.start(Broken(), factory=Broken)
        await virtual_clock.advance(30)
        await ref.wait()
    assert starts == [0, 1, 3, 7]
    assert [str(error) for error in lost.errors] == ["cannot start"]


async def test_old_crashes_are_forgotten(virtual_clock: VirtualClock) -> None:
    """Crashes further apart than the window allows never add up to a give-up."""
    async with Supervisor(clock=virtual_clock, restarts=1, window=10, backoff=1) as supervisor:
        ref = supervisor.start(Adder(), factory=Adder)
        for _ in range(3):
            await ref.tell(0)
            await virtual_clock.advance(11)
        assert await ref.ask(1) == 1


async def test_a_raising_factory_counts_as_a_crash(virtual_clock: VirtualClock) -> None:
    """A factory that cannot make an actor is tried as often as an actor that cannot start."""
    lost = GivenUp()
    tries: list[float] = []

    def fail() -> Adder:
        tries.append(virtual_clock.now())
        raise ValueError("no actor")

    async with Supervisor(clock=virtual_clock, restarts=2, backoff=1, on_give_up=lost.note) as supervisor:
        ref = supervisor.start(Adder(), factory=fail)
        await ref.tell(0)
        await virtual_clock.advance(10)
    assert tries == [1, 3]
    assert str(lost.errors[0]) == "no actor"


async def test_mail_survives_an_actor_that_cannot_start(virtual_clock: VirtualClock) -> None:
    """What a crash left is kept through further crashes, until an actor has taken it."""
    broken = [False, True, False]

    class Convalescent(Adder):
        async def started(self) -> None:
            if broken.pop():
                raise ValueError("not yet")

    async with Supervisor(clock=virtual_clock) as supervisor:
        ref = supervisor.start(Convalescent(), factory=Convalescent)
        for message in (0, 7):
            await ref.tell(message)
        await virtual_clock.advance(10)
        assert await ref.ask(1) == 8


async def test_an_actor_that_waits_for_its_restart_can_be_stopped(virtual_clock: VirtualClock) -> None:
    """An ordered stop does not wait for the back-off, and no new actor is made."""
    made: list[Adder] = []

    def make() -> Adder:
        made.append(Adder())
        return made[-1]

    async with Supervisor(clock=virtual_clock, backoff=3600) as supervisor:
        ref = supervisor.start(Adder(), factory=make)
        await ref.tell(0)
        await ref.tell(1)
        await anyio.wait_all_tasks_blocked()
        await supervisor.stop("adder")
        assert not ref.alive
    assert made == []


async def test_a_crash_during_an_ordered_stop_is_no_reason_to_restart(virtual_clock: VirtualClock) -> None:
    """An actor that is being stopped and crashes has ended, factory or not."""

    class BadEnd(Adder):
        async def stopped(self) -> None:
            raise ValueError("in stopped")

    lost = GivenUp()
    async with Supervisor(clock=virtual_clock, on_give_up=lost.note) as supervisor:
        supervisor.start(BadEnd(), factory=BadEnd)
        await supervisor.stop("adder")
    assert [str(error) for error in lost.errors] == ["in stopped"]


async def test_what_a_crash_left_is_dropped_when_the_actor_is_stopped(virtual_clock: VirtualClock) -> None:
    """An actor whose restart stops it at once handles nothing more."""
    received: list[int] = []

    class Quitter(Adder):
        async def started(self) -> None:
            self.stop()

        async def receive(self, message: int) -> int:
            received.append(message)
            return message

    async with Supervisor(clock=virtual_clock) as supervisor:
        ref = supervisor.start(Adder(), factory=Quitter)
        await ref.tell(0)
        await ref.tell(1)
        await virtual_clock.advance(1)
        await ref.wait()
    assert received == []
