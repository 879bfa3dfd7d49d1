"""Asks: deadlines, cycles, and askers that never hang."""

from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from rewound.actors import Actor, Letter, Ref, Supervisor, VirtualClock
from rewound.errors import ActorError, ActorStopped, AskCycle, AskTimeout
from tests.actors.parts import Asker, AskOther, Blocked

pytestmark = pytest.mark.anyio


async def test_an_ask_without_reply_in_time_raises(virtual_clock: VirtualClock) -> None:
    """The deadline is on the supervisor's clock, and the error is a `TimeoutError` too."""
    actor = Blocked("slow")
    async with Supervisor(clock=virtual_clock) as supervisor:
        ref = supervisor.start(actor)
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(TimeoutError, match="'slow' did not answer within 5 s"):
                    await ref.ask("a", timeout=5)

            tasks.start_soon(ask)
            await virtual_clock.advance(4.9)
            await virtual_clock.advance(0.1)
        actor.gate.set()
        assert await ref.ask("b", timeout=5) == "b"
    assert actor.log[1:3] == ["a", "b"]


async def test_a_deadline_covers_the_wait_for_room(virtual_clock: VirtualClock) -> None:
    """An ask that never got into a full mailbox times out, and its message is not handled."""

    class Small(Blocked):
        mailbox_capacity = 1

    actor = Small("small")
    async with Supervisor(clock=virtual_clock) as supervisor:
        ref = supervisor.start(actor)
        await ref.tell("in hand")
        await actor.entered.wait()
        await ref.tell("unread")
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(AskTimeout):
                    await ref.ask("outside", timeout=1)

            tasks.start_soon(ask)
            await virtual_clock.advance(1)
        actor.gate.set()
    assert "outside" not in actor.log


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_every_open_ask_is_told_of_the_end(how: str) -> None:
    """Asks in hand, unread, and waiting for room all raise `ActorStopped` when the actor ends."""

    class Forgetful(Blocked):
        mailbox_capacity = 1

        async def handle(self, letters: list[Letter[Any]]) -> None:
            self.entered.set()
            await self.gate.wait()

    told: list[str] = []
    actor = Forgetful("forgetful")
    async with Supervisor() as supervisor, anyio.create_task_group() as tasks:
        ref = supervisor.start(actor)

        async def ask(message: str) -> None:
            with pytest.raises(ActorStopped):
                await ref.ask(message)
            told.append(message)

        for message in ("in hand", "unread", "outside"):
            tasks.start_soon(ask, message)
            await anyio.wait_all_tasks_blocked()
        if how == "kill":
            supervisor.kill("forgetful")
        else:
            tasks.start_soon(supervisor.stop, "forgetful")
            await anyio.wait_all_tasks_blocked()
            actor.gate.set()
    assert sorted(told) == ["in hand", "outside", "unread"]


async def test_an_actor_that_asks_itself_is_told() -> None:
    """It would wait for ever; the error names it."""
    async with Supervisor() as supervisor:
        a = supervisor.start(Asker("a"))
        with pytest.raises(AskCycle, match="a -> a: these actors would wait"):
            await a.ask(AskOther(a))


async def test_a_cycle_through_others_is_named() -> None:
    """The one who would close the cycle is refused; the refusal travels back to the first asker."""
    async with Supervisor() as supervisor:
        a, b, c = (supervisor.start(Asker(key)) for key in "abc")
        with pytest.raises(AskCycle, match="a -> b -> c -> a"):
            await a.ask(AskOther(b, AskOther(c, AskOther(a))))
        assert await a.ask(AskOther(b, AskOther(c))) == "c"


async def test_a_cycle_through_earlier_mail_is_found() -> None:
    """Two actors that ask each other at the same time form a cycle though neither ask led to the other."""

    class Crosser(Actor[Any]):
        def __init__(self, key: str) -> None:
            self.key = key
            self.gate = anyio.Event()

        async def receive(self, message: Ref[Any] | None) -> Any:
            if message is not None:
                await self.gate.wait()
                return await message.ask(None)
            return self.key

    first, second = Crosser("first"), Crosser("second")
    outcomes: list[Any] = []
    async with Supervisor() as supervisor:
        refs = [supervisor.start(first), supervisor.start(second)]

        async def drive(ref: Ref[Any], other: Ref[Any]) -> None:
            try:
                outcomes.append(await ref.ask(other))
            except AskCycle as error:
                outcomes.append(str(error).partition(":")[0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drive, refs[0], refs[1])
            tasks.start_soon(drive, refs[1], refs[0])
            await anyio.wait_all_tasks_blocked()
            first.gate.set()
            await anyio.wait_all_tasks_blocked()
            second.gate.set()
    assert outcomes == ["first -> second -> first", "second"]


async def test_an_answered_asker_may_be_asked() -> None:
    """Once a letter is answered its asker waits no more: to ask it is no cycle."""

    class Eager(Actor[Ref[Any]]):
        key = "eager"
        heard: Any = None

        async def handle(self, letters: list[Letter[Ref[Any]]]) -> None:
            for letter in letters:
                letter.reply("here you are")
                self.heard = await letter.message.ask(None)

    async with Supervisor() as supervisor:
        eager = Eager()
        b = supervisor.start(eager)
        a = supervisor.start(Asker("a"))
        assert await a.ask(AskOther(b, a)) == "here you are"
        assert await a.ask(None) == "a"
    assert eager.heard == "a"


async def test_tasks_that_an_actor_started_may_ask_whom_they_like() -> None:
    """A task that an actor merely started asks that very actor: no cycle, as it reads its mail meanwhile."""

    class Starter(Asker):
        heard: list[Any]

        async def receive(self, message: Any) -> Any:
            if isinstance(message, TaskGroup):
                message.start_soon(self.ask_back)
                await anyio.wait_all_tasks_blocked()
                return None
            return await super().receive(message)

        async def ask_back(self) -> None:
            self.heard = [await self.ref.ask("who?")]

    starter = Starter("starter")
    async with Supervisor() as supervisor, anyio.create_task_group() as tasks:
        await supervisor.start(starter).ask(tasks)
    assert starter.heard == ["starter"]


async def test_a_letter_names_the_actor_that_asks() -> None:
    """`asker` is the key of an actor that asks in its own task, and None for everybody else."""
    askers: list[Any] = []

    class Curious(Actor[Any]):
        key = "curious"

        async def handle(self, letters: list[Letter[Any]]) -> None:
            for letter in letters:
                askers.append(letter.asker)
                letter.reply()

    async with Supervisor() as supervisor:
        curious = supervisor.start(Curious())
        await curious.tell(1)
        await curious.ask(2)
        await supervisor.start(Asker("a")).ask(AskOther(curious, 3))
    assert askers == [None, None, "a"]


async def test_an_actor_whose_mailbox_is_full_cannot_tell_itself() -> None:
    """Only it could make room: it is told, and how to do it."""

    class Chatty(Actor[int]):
        key = "chatty"
        mailbox_capacity = 1

        async def receive(self, message: int) -> None:
            await self.ref.tell(1)
            await self.ref.tell(2)

    async with Supervisor() as supervisor:
        with pytest.raises(ActorError, match=r"'chatty' told itself .* use self.ref.signal"):
            await supervisor.start(Chatty()).ask(0)


async def test_others_wait_for_room_while_the_actor_works() -> None:
    """Back-pressure: a `tell` to a full mailbox returns when the message is in."""

    class Small(Blocked):
        mailbox_capacity = 1

    actor = Small("small")
    async with Supervisor() as supervisor:
        ref = supervisor.start(actor)
        await ref.tell("a")
        await actor.entered.wait()
        await ref.tell("b")
        with pytest.raises(anyio.WouldBlock):
            ref.tell_nowait("x")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ref.tell, "c")
            await anyio.wait_all_tasks_blocked()
            actor.gate.set()
        assert await ref.ask("d") == "d"
    assert actor.log[1:-1] == ["a", "b", "c", "d"]
