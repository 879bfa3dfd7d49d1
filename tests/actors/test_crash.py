"""Crashes: isolation, restarts with a limit, giving up."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from rewound.actors import Actor, Letter, Supervisor, VirtualClock
from rewound.errors import ActorError, ActorStopped
from tests.actors.parts import Adder, Blocked, GivenUp

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
    assert "on_give_up raised for actor 'adder'" in caplog.text


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


class Stray(Actor[str]):
    """Raises a cancellation that nobody asked for."""

    key = "stray"

    async def receive(self, message: str) -> str:
        """Catch a cancellation of its own making, and raise it outside of its scope."""
        if message != "stray":
            return message
        cancellation: BaseException = ValueError()
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await checkpoint()
            except anyio.get_cancelled_exc_class() as caught:
                cancellation = caught
                raise
        raise cancellation


async def test_a_cancellation_that_user_code_raised_is_a_crash(virtual_clock: VirtualClock) -> None:
    """It ends or restarts the actor that raised it, and never the siblings (architecture, section 2)."""
    lost = GivenUp()
    async with Supervisor(clock=virtual_clock, restarts=1, on_give_up=lost.note) as supervisor:
        good = supervisor.start(Adder())
        ref = supervisor.start(Stray(), factory=Stray)
        await ref.tell("stray")
        await virtual_clock.advance(1)
        assert await ref.ask("alive") == "alive"
        await ref.tell("stray")
        await ref.wait()
        assert await good.ask(1) == 1
    assert "no cancel scope around this task was cancelled" in str(lost.errors[0])


async def test_waiting_for_a_cancelled_future_is_a_crash(anyio_backend_name: str) -> None:
    """On asyncio a bare `CancelledError` can come from a future; the actor was not cancelled."""
    if anyio_backend_name == "trio":
        pytest.skip("trio has no futures")

    class Futile(Actor[None]):
        key = "futile"

        async def receive(self, message: None) -> None:
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

    lost = GivenUp()
    async with Supervisor(on_give_up=lost.note) as supervisor:
        good = supervisor.start(Adder())
        with pytest.raises(ActorStopped):
            await supervisor.start(Futile()).ask(None)
        assert await good.ask(1) == 1
    assert isinstance(lost.errors[0], ActorError)


async def test_a_task_cancelled_from_outside_ends_its_actor_only(anyio_backend_name: str) -> None:
    """`Task.cancel` on an actor's task ends it without restart; the siblings live."""
    if anyio_backend_name == "trio":
        pytest.skip("trio tasks cannot be cancelled singly")

    class Exposed(Blocked):
        task: Any

        async def started(self) -> None:
            self.task = asyncio.current_task()

    lost = GivenUp()
    async with Supervisor(on_give_up=lost.note) as supervisor:
        good = supervisor.start(Adder())
        exposed = Exposed("exposed")
        ref = supervisor.start(exposed, factory=lambda: Exposed("exposed"))
        await anyio.wait_all_tasks_blocked()
        exposed.task.cancel()
        await ref.wait()
        assert await good.ask(1) == 1
    assert lost.keys == ["exposed"]


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt and SystemExit, which pytest would take for its own."""


async def test_what_ends_the_interpreter_passes_through() -> None:
    """A `BaseException` that is no cancellation is not the supervisor's: it ends the block."""

    class Exiting(Actor[None]):
        key = "exiting"

        async def receive(self, message: None) -> None:
            raise Interrupt

    async def host() -> None:
        async with Supervisor() as supervisor:
            await supervisor.start(Exiting(), factory=Exiting).tell(None)
            await anyio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        await host()
    assert [type(error) for error in caught.value.exceptions] == [Interrupt]


class Group(Actor[str]):
    """Owns a task that fails when it is cancelled."""

    key = "group"

    async def run(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Hold a task group around the life."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.fail_when_cancelled)
            await serve()

    async def fail_when_cancelled(self) -> None:
        """Fail during its clean-up."""
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("in clean-up")

    async def receive(self, message: str) -> str:
        """Crash on demand."""
        raise ValueError(message)


async def test_a_group_of_errors_is_a_crash() -> None:
    """An actor with tasks of its own crashes with the group of what went wrong."""
    lost = GivenUp()
    async with Supervisor(on_give_up=lost.note) as supervisor:
        ref = supervisor.start(Group())
        await anyio.wait_all_tasks_blocked()
        await ref.tell("in receive")
        await ref.wait()
    group: Any = lost.errors[0]
    assert sorted(map(str, group.exceptions)) == ["in clean-up", "in receive"]


async def test_errors_during_a_kill_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """What clean-up raises while an actor is killed does not leave the supervisor."""
    async with Supervisor() as supervisor:
        ref = supervisor.start(Group())
        await anyio.wait_all_tasks_blocked()
        with caplog.at_level(logging.ERROR, "rewound.actors"):
            supervisor.kill("group")
            await ref.wait()
    assert "ValueError: in clean-up" in caplog.text


async def test_errors_while_the_program_is_cancelled_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """What clean-up raises while everything is cancelled does not replace the cancellation."""
    with anyio.CancelScope() as scope:
        async with Supervisor() as supervisor:
            supervisor.start(Group())
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert "ValueError: in clean-up" in caplog.text
