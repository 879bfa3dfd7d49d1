"""Actors: receive, reply, refuse, batch, stop."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from rewound.actors import Actor, Supervisor
from rewound.errors import ActorError, ActorStopped
from tests.actors.parts import Adder, Blocked, RefusedError

pytestmark = pytest.mark.anyio


async def test_ask_returns_what_receive_returns() -> None:
    """An actor handles tells and asks in the order they came."""
    async with Supervisor() as supervisor:
        adder = supervisor.start(Adder())
        await adder.tell(1)
        adder.tell_nowait(2)
        assert await adder.ask(3) == 6


async def test_a_signal_overtakes_mail() -> None:
    """What is signalled is received before what was told earlier."""
    async with Supervisor() as supervisor:
        actor = Blocked("actor")
        ref = supervisor.start(actor)
        actor.gate.set()
        await ref.tell("told")
        ref.signal("key", "replaced")
        ref.signal("key", "signalled")
        assert await ref.ask("asked") == "asked"
    assert actor.log == ["actor started", "signalled", "told", "asked", "actor stopped"]


async def test_a_refusal_reaches_the_asker_and_the_actor_goes_on() -> None:
    """A `RewoundError` in answer to an ask is the answer; the actor keeps its state."""
    async with Supervisor() as supervisor:
        adder = supervisor.start(Adder())
        await adder.ask(5)
        with pytest.raises(RefusedError, match="-1 is negative"):
            await adder.ask(-1)
        assert await adder.ask(1) == 6


async def test_a_refusal_of_a_tell_is_a_crash() -> None:
    """There is nobody to refuse to, so the error is the supervisor's affair."""
    async with Supervisor() as supervisor:
        adder = supervisor.start(Adder())
        await adder.tell(-1)
        await adder.wait()
        assert not adder.alive


async def test_any_other_exception_reaches_the_asker_and_is_a_crash() -> None:
    """The asker gets the exception itself; the actor, whose state may be half done, ends."""
    async with Supervisor() as supervisor:
        adder = supervisor.start(Adder())
        with pytest.raises(ValueError, match="zero crashes"):
            await adder.ask(0)
        await adder.wait()
        with pytest.raises(ActorStopped, match="'adder' has stopped"):
            await adder.tell(1)


async def test_an_actor_without_receive_says_so() -> None:
    """A message to an actor that forgot `receive` names the class and the remedy."""

    class Deaf(Actor[int]):
        key = "deaf"

    async with Supervisor() as supervisor:
        with pytest.raises(NotImplementedError, match="Deaf needs a `receive`"):
            await supervisor.start(Deaf()).ask(1)


async def test_an_actor_may_stop_itself() -> None:
    """`stop` lets the batch be finished, then `stopped` runs and the key is free."""

    class Once(Blocked):
        async def receive(self, message: Any) -> Any:
            self.stop()
            return await super().receive(message)

    async with Supervisor() as supervisor:
        actor = Once("once")
        actor.gate.set()
        ref = supervisor.start(actor)
        await ref.tell("a")
        await ref.tell("b")
        await ref.wait()
        assert supervisor.find("once") is None
    assert actor.log == ["once started", "a", "b", "once stopped"]


async def test_an_idle_actor_sees_the_mail_that_arrived_meanwhile() -> None:
    """`pending` counts what came since the batch began, so that an actor that passivates loses nothing."""

    class Sleepy(Actor[Any]):
        key = "sleepy"
        seen: list[int]

        async def receive(self, message: Any) -> Any:
            if message == "go on":
                self.ref.tell_nowait("more")
            self.seen = [*getattr(self, "seen", []), self.pending]
            if not self.pending:
                self.stop()

    async with Supervisor() as supervisor:
        actor = Sleepy()
        ref = supervisor.start(actor)
        await ref.tell("go on")
        await ref.wait()
    assert actor.seen == [1, 0]


async def test_mail_after_stop_is_refused_and_askers_do_not_hang() -> None:
    """An ask that lies unread when the actor stops is told so, and later ones at once."""

    class Stopper(Blocked):
        async def receive(self, message: Any) -> Any:
            await super().receive(message)
            self.stop()

    async with Supervisor() as supervisor, anyio.create_task_group() as tasks:
        actor = Stopper("stopper")
        ref = supervisor.start(actor)
        await ref.tell("stop")
        await actor.entered.wait()

        async def ask() -> None:
            with pytest.raises(ActorStopped, match="'stopper' stopped before it answered"):
                await ref.ask("unread")

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        actor.gate.set()
        await ref.wait()
        with pytest.raises(ActorStopped, match="has stopped"):
            await ref.ask("late")


async def test_run_puts_context_managers_around_a_life() -> None:
    """`run` closes what it opened when the actor is stopped, crashes or is killed."""
    log: list[str] = []

    class Holder(Actor[Any]):
        def __init__(self, key: str) -> None:
            self.key = key

        async def run(self, serve: Callable[[], Awaitable[None]]) -> None:
            async with AsyncExitStack() as stack:
                stack.callback(log.append, f"{self.key} closed")
                await serve()

        async def receive(self, message: Any) -> None:
            raise ValueError(message)

    async with Supervisor() as supervisor:
        supervisor.start(Holder("stopped"))
        killed = supervisor.start(Holder("killed"))
        crashed = supervisor.start(Holder("crashed"))
        await anyio.wait_all_tasks_blocked()
        await crashed.tell("boom")
        await crashed.wait()
        supervisor.kill("killed")
        await killed.wait()
    assert log == ["crashed closed", "killed closed", "stopped closed"]


async def test_an_actor_may_own_tasks() -> None:
    """With a task group in `run` an actor starts work without holding up its mailbox."""

    class Worker(Actor[str]):
        key = "worker"
        tasks: anyio.abc.TaskGroup

        def __init__(self) -> None:
            self.done: list[str] = []

        async def run(self, serve: Callable[[], Awaitable[None]]) -> None:
            async with anyio.create_task_group() as self.tasks:
                await serve()
                self.tasks.cancel_scope.cancel()

        async def receive(self, message: str) -> list[str]:
            if message == "work":
                self.tasks.start_soon(self.work)
            else:
                self.done.append(message)
            return self.done

        async def work(self) -> None:
            self.ref.signal("done", "worked")
            await anyio.sleep_forever()

    async with Supervisor() as supervisor:
        worker = supervisor.start(Worker())
        assert await worker.ask("work") == []
        await anyio.wait_all_tasks_blocked()
        assert await worker.ask("asked") == ["worked", "asked"]


async def test_an_actor_that_was_not_started_says_so() -> None:
    """What needs a running actor names the remedy."""
    actor = Adder()
    for use in (lambda: actor.ref, lambda: actor.pending, actor.stop):
        with pytest.raises(ActorError, match="Adder has not been started"):
            use()


async def test_references_to_one_actor_are_one() -> None:
    """`find`, `start` and `self.ref` give the same handle, which tells its key and whether it lives."""
    async with Supervisor() as supervisor:
        actor = Adder()
        ref = supervisor.start(actor)
        assert ref is supervisor.find("adder")
        assert ref is actor.ref
        assert ref.key == "adder"
        assert repr(ref) == "<Ref to 'adder'>"
        await supervisor.stop("adder")
        await ref.wait()
        assert repr(ref) == "<Ref to 'adder', ended>"
