"""Cancellation: asked for, or raised by user code; and what passes through a supervisor."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from rewound.actors import Actor, Supervisor, VirtualClock
from rewound.errors import ActorError, ActorStopped
from tests.actors.parts import Adder, Blocked, GivenUp

pytestmark = pytest.mark.anyio


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
