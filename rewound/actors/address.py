"""The lasting side of an actor, and who waits for whom.

An actor's task can wait for one ask at a time, so "who waits for whom" is a chain from address to
address, and a cycle is found by walking it. Rejected: carrying the chain of askers in each message. It
misses a cycle through mail that was sent earlier, and sees one where a question was answered already.

Only asks made by an actor's own task are links. A task that an actor merely started may ask whom it
likes: the actor goes on reading its mail meanwhile, so nothing is stuck.
"""

import logging
from collections.abc import Hashable
from contextvars import ContextVar
from typing import Any

import anyio

from rewound.actors.clock import Clock
from rewound.actors.mailbox import Mailbox
from rewound.errors import ActorError, ActorStopped, AskCycle

logger = logging.getLogger("rewound.actors")

# Tasks inherit it from the task that starts them; `acting` tells the actor's own task from those.
_address: ContextVar["Address | None"] = ContextVar("rewound_actor", default=None)


class Question:
    """What is open between an asker and the actor that was asked.

    Args:
        target: who was asked.
        asker: the actor that waits for the answer, if an actor does.
    """

    __slots__ = ("_done", "answered", "asker", "error", "target", "value")

    def __init__(self, target: "Address", asker: "Address | None") -> None:
        self.target = target
        self.asker = asker
        self.answered = False
        self.value: Any = None
        self.error: BaseException | None = None
        self._done = anyio.Event()

    def answer(self, value: Any, error: BaseException | None = None) -> None:
        """Settle the question; only the first answer counts."""
        if not self.answered:
            self.answered = True
            self.value = value
            self.error = error
            self.target.open.discard(self)
            self._done.set()

    async def wait(self) -> Any:
        """Wait for the answer and return it, or raise the error that was given instead."""
        await self._done.wait()
        if self.error is not None:
            raise self.error
        return self.value


class Address:
    """What stays the same while an actor is restarted: its key, mail, and open questions.

    Args:
        key: the actor's key.
        mailbox: its mail.
        clock: for the deadlines of asks.
    """

    __slots__ = ("_ended", "alive", "clock", "key", "mailbox", "open", "task", "unread", "waits_for")

    def __init__(self, key: Hashable, mailbox: Mailbox[Any], clock: Clock) -> None:
        self.key = key
        self.mailbox = mailbox
        self.clock = clock
        self.alive = True
        self.open: set[Question] = set()
        self.task: int | None = None
        self.waits_for: Question | None = None
        self.unread: list[Any] = []  # letters of a batch that a crash cut off, for the next actor
        self._ended: anyio.Event | None = None

    def enter(self) -> None:
        """Make the current task the actor's own."""
        _address.set(self)
        self.task = anyio.get_current_task().id

    def leave(self, crash: Exception | None) -> None:
        """End: refuse mail, fail the open questions, wake those who wait for the end."""
        self.close()
        self.task = None
        self.alive = False
        self.abandon(crash, set())
        if self._ended is not None:
            self._ended.set()

    def close(self) -> None:
        """Refuse mail from now on, and drop what was not delivered."""
        unread = self.mailbox.close()
        if unread:
            logger.debug("actor %r stopped with %d messages unread", self.key, len(unread))

    def abandon(self, crash: Exception | None, kept: set[Question]) -> None:
        """Fail the open questions, save those that are kept."""
        for question in self.open - kept:
            how = "stopped" if crash is None else "crashed"
            error = ActorStopped(f"actor {self.key!r} {how} before it answered")
            error.__cause__ = crash
            question.answer(None, error)

    def take_unread(self) -> list[Any]:
        """Take the letters that a crash left."""
        unread, self.unread = self.unread, []
        return unread

    def check_other(self) -> None:
        """Refuse an actor that would wait for its own end.

        Raises:
            ActorError: the actor itself is running.
        """
        if acting() is self:
            raise ActorError(f"actor {self.key!r} cannot wait for its own end; call self.stop() and return")

    async def ended(self) -> None:
        """Wait until the actor has ended.

        Raises:
            ActorError: the actor waits for its own end.
        """
        self.check_other()
        if self.alive:
            self._ended = self._ended or anyio.Event()
            await self._ended.wait()


def acting() -> Address | None:
    """Return the address of the actor whose own task is running now, if one is."""
    address = _address.get()
    if address is None or address.task != anyio.get_current_task().id:
        return None
    return address


def check_cycle(asker: Address, target: Address) -> None:
    """Refuse an ask that could never be answered, because its target waits for the asker.

    Raises:
        AskCycle: the message names the cycle.
    """
    keys = [target.key]
    waiting: Address = target
    while waiting is not asker:
        question = waiting.waits_for
        if question is None or question.answered:
            return
        waiting = question.target
        keys.append(waiting.key)
    cycle = " -> ".join(str(key) for key in [*keys, target.key])
    raise AskCycle(f"{cycle}: these actors would wait for each other; let one tell and take a message back")
