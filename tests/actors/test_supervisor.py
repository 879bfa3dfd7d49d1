"""Supervisors: start, find, stop in order, kill."""

import contextvars
from typing import Any

import anyio
import pytest

from rewound.actors import Actor, Supervisor
from rewound.errors import ActorError, ActorStopped
from tests.actors.parts import Adder, Blocked, GivenUp

pytestmark = pytest.mark.anyio

place = contextvars.ContextVar("place", default="nowhere")


async def test_leaving_stops_the_last_started_first() -> None:
    """An actor may use those that were started before it until its own end."""
    log: list[Any] = []
    async with Supervisor() as supervisor:
        for key in "abc":
            supervisor.start(Blocked(key, log))
        await anyio.wait_all_tasks_blocked()
        log.clear()
    assert log == ["c stopped", "b stopped", "a stopped"]


async def test_stop_all_takes_an_order() -> None:
    """The keys that are named go first, the rest in reverse; the supervisor can be used further."""
    log: list[Any] = []
    async with Supervisor() as supervisor:
        for key in "abcd":
            supervisor.start(Blocked(key, log))
        await anyio.wait_all_tasks_blocked()
        log.clear()
        await supervisor.stop_all(["b", "unknown", "d"])
        assert log == ["b stopped", "d stopped", "c stopped", "a stopped"]
        assert await supervisor.start(Adder()).ask(1) == 1


async def test_an_actor_finishes_its_batch_before_it_stops() -> None:
    """An ordered stop waits for what is in hand; what is still unread is not handled."""
    actor = Blocked("actor")
    async with Supervisor() as supervisor, anyio.create_task_group() as tasks:
        ref = supervisor.start(actor)
        await ref.tell("in hand")
        await actor.entered.wait()
        await ref.tell("unread")
        tasks.start_soon(supervisor.stop, "actor")
        await anyio.wait_all_tasks_blocked()
        assert ref.alive
        actor.gate.set()
        await ref.wait()
    assert actor.log == ["actor started", "in hand", "actor stopped"]


async def test_actors_that_are_started_while_all_stop_are_stopped_too() -> None:
    """Nothing is left when `stop_all` returns, even where the end of one actor starts another."""

    class Phoenix(Actor[Any]):
        key = "phoenix"

        async def stopped(self) -> None:
            supervisor.start(Adder("heir"))

    async with Supervisor() as supervisor:
        supervisor.start(Phoenix())
        await supervisor.stop_all()
        assert supervisor.find("heir") is None


async def test_a_killed_actor_ends_at_once() -> None:
    """`kill` cancels what is in hand; `stopped` does not run, and no crash is reported."""
    actor = Blocked("actor")
    lost = GivenUp()
    async with Supervisor(on_give_up=lost.note) as supervisor:
        ref = supervisor.start(actor)
        await ref.tell("in hand")
        await actor.entered.wait()
        supervisor.kill("actor")
        supervisor.kill("unknown")
        await ref.wait()
    assert actor.log == ["actor started"]
    assert lost.keys == []


async def test_an_actor_killed_before_it_began_never_begins() -> None:
    """`kill` right after `start` leaves no trace of the actor, and its askers do not hang."""
    actor = Blocked("actor")
    async with Supervisor() as supervisor:
        ref = supervisor.start(actor)
        supervisor.kill("actor")
        with pytest.raises(ActorStopped):
            await ref.ask("a")
        await ref.wait()
        await ref.wait()
    assert actor.log == []


async def test_a_stop_may_come_before_the_start_was_done() -> None:
    """An actor stopped while it starts ends in order, without having read any mail."""

    class Slow(Blocked):
        async def started(self) -> None:
            await super().started()
            await self.gate.wait()

    actor = Slow("slow")
    async with Supervisor() as supervisor, anyio.create_task_group() as tasks:
        await supervisor.start(actor).tell("unread")
        tasks.start_soon(supervisor.stop, "slow")
        await anyio.wait_all_tasks_blocked()
        actor.gate.set()
    assert actor.log == ["slow started", "slow stopped"]


async def test_a_key_is_used_once_at_a_time() -> None:
    """A second actor with a living key is refused; after the first one's end it is welcome."""
    async with Supervisor() as supervisor:
        supervisor.start(Adder("a"))
        with pytest.raises(ActorError, match="key 'a' is alive"):
            supervisor.start(Adder("a"))
        await supervisor.stop("a")
        assert supervisor.find("a") is None
        assert await supervisor.start(Adder("a")).ask(1) == 1


async def test_what_cannot_be_started_is_refused_by_name() -> None:
    """No key, an actor that was used, a supervisor outside its block: each error tells the remedy."""

    class Nameless(Actor[Any]):
        pass

    supervisor = Supervisor()
    with pytest.raises(ActorError, match="start actors inside its block"):
        supervisor.start(Adder())
    async with supervisor:
        with pytest.raises(ActorError, match="Nameless has no key; set `key`"):
            supervisor.start(Nameless())
        used = Adder()
        await supervisor.start(used).ask(1)
        await supervisor.stop("adder")
        with pytest.raises(ActorError, match="start a new Adder"):
            supervisor.start(used)
    with pytest.raises(ActorError, match="start actors inside its block"):
        supervisor.start(Adder())


async def test_a_supervisor_is_entered_once() -> None:
    """It is not used again after its block, nor left without having been entered."""
    supervisor = Supervisor()
    with pytest.raises(ActorError, match="was not entered"):
        await supervisor.__aexit__(None, None, None)
    async with supervisor:
        pass
    with pytest.raises(ActorError, match="entered before"):
        await supervisor.__aenter__()


async def test_an_actor_cannot_wait_for_its_own_end() -> None:
    """Stopping itself through the supervisor, or waiting for itself, is an error that names `stop`."""

    class Ouroboros(Actor[str]):
        key = "ouroboros"

        async def receive(self, message: str) -> None:
            if message == "wait":
                await self.ref.wait()
            await supervisor.stop(self.key)

    async with Supervisor() as supervisor:
        ref = supervisor.start(Ouroboros())
        for message in ("wait", "stop"):
            with pytest.raises(ActorError, match=r"its own end; call self.stop\(\)"):
                await ref.ask(message)
        assert ref.alive


async def test_an_actor_sees_the_context_it_is_given() -> None:
    """`context` decides the context variables of the actor; else it sees a copy of the caller's."""

    class Where(Actor[None]):
        def __init__(self, key: str) -> None:
            self.key = key

        async def receive(self, message: None) -> str:
            return place.get()

    place.set("here")
    elsewhere = contextvars.copy_context()
    elsewhere.run(place.set, "there")
    async with Supervisor() as supervisor:
        assert await supervisor.start(Where("a")).ask(None) == "here"
        assert await supervisor.start(Where("b"), context=elsewhere).ask(None) == "there"


async def test_an_exception_of_the_block_cancels_the_actors_and_is_raised_as_it_is() -> None:
    """The block's own error comes out unwrapped, and no actor outlives it."""
    actor = Blocked("actor")
    error = ValueError("of the block")

    async def host() -> None:
        async with Supervisor() as supervisor:
            await supervisor.start(actor).tell("in hand")
            await actor.entered.wait()
            raise error

    with pytest.raises(ValueError, match="of the block") as caught:
        await host()
    assert caught.value is error
    assert not actor.ref.alive
    assert actor.log == ["actor started"]


async def test_a_cancelled_block_cancels_the_actors() -> None:
    """Cancellation from around the supervisor reaches every actor and is not swallowed."""
    actor = Blocked("actor")
    with anyio.CancelScope() as scope:
        async with Supervisor() as supervisor:
            await supervisor.start(actor).tell("in hand")
            await actor.entered.wait()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert not actor.ref.alive


async def test_leaving_can_be_cancelled() -> None:
    """An actor that does not finish its batch holds up the end of the block only until it is cancelled."""
    actor = Blocked("stuck")
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks, Supervisor() as supervisor:
            await supervisor.start(actor).tell("in hand")
            await actor.entered.wait()

            async def lose_patience() -> None:
                await anyio.wait_all_tasks_blocked()
                assert actor.ref.alive
                scope.cancel()

            tasks.start_soon(lose_patience)
    assert scope.cancelled_caught
    assert actor.log == ["stuck started"]
