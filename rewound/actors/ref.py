"""The way to reach an actor."""

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import anyio

from rewound.actors.address import Address, Question, acting, check_cycle
from rewound.actors.letter import Letter
from rewound.errors import ActorError, AskTimeout

M = TypeVar("M")


class Ref(Generic[M]):
    """A handle on an actor; it stays good while the actor is restarted.

    Made by `Supervisor.start`; an actor finds its own in `self.ref`.

    Args:
        address: what the library keeps of the actor; not for users.
    """

    __slots__ = ("address",)

    def __init__(self, address: Address) -> None:
        self.address = address

    @property
    def key(self) -> Hashable:
        """The actor's key."""
        return self.address.key

    @property
    def alive(self) -> bool:
        """Whether the actor has not ended; it may be stopping, or waiting for its restart."""
        return self.address.alive

    async def tell(self, message: M) -> None:
        """Send a message; wait while the mailbox is full.

        Returns when the message is in the mailbox, not when it is handled. Lets other tasks run only
        when it has to wait.

        Raises:
            ActorStopped: the actor takes no more mail.
            ActorError: the actor tells itself and its mailbox is full; it would wait for ever.

        Example:
            >>> await ref.tell(Deposit(5))
        """
        mailbox = self.address.mailbox
        if mailbox.full:
            self._check_reader()
        await mailbox.put(Letter(message))

    def tell_nowait(self, message: M) -> None:
        """Send a message if there is room.

        Raises:
            ActorStopped: the actor takes no more mail.
            anyio.WouldBlock: the mailbox is full.
        """
        self.address.mailbox.put_nowait(Letter(message))

    def signal(self, key: Hashable, message: M) -> None:
        """Send a message ahead of ordinary mail; an unread one with the same key is replaced.

        Never waits: the way for actors to tell each other things without locking up.

        Raises:
            ActorStopped: the actor takes no more mail.
        """
        self.address.mailbox.signal(key, Letter(message))

    async def ask(self, message: M, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - runs on the supervisor's clock
        """Send a message and wait for its reply.

        Args:
            message: what to send.
            timeout: the most seconds to wait, on the supervisor's clock; None means for ever. It covers
                the wait for room in the mailbox too.

        Returns:
            what `receive` returned, or was given to `Letter.reply`.

        Raises:
            ActorStopped: the actor ended, or crashed, before it answered.
            AskTimeout: no reply came in time; the message may be handled all the same.
            AskCycle: the actor that was asked waits, directly or through others, for the asker.
            Exception: what `receive` raised, or was given to `Letter.fail`.

        Example:
            >>> balance = await ref.ask(Balance(), timeout=5)
        """
        asker = acting()
        question = Question(self.address, asker)
        if asker is not None:
            check_cycle(asker, self.address)
            asker.waits_for = question
        try:
            letter = Letter(message, question)
            if timeout is None:
                return await self._exchange(letter, question)
            return await self._exchange_within(letter, question, timeout)
        finally:
            question.answer(None)
            if asker is not None:
                asker.waits_for = None

    async def wait(self) -> None:
        """Wait until the actor has ended, for whatever reason.

        Raises:
            ActorError: called by the actor itself.
        """
        await self.address.ended()

    def _check_reader(self) -> None:
        if acting() is self.address:
            raise ActorError(
                f"actor {self.key!r} told itself something while its mailbox is full; "
                "it would wait for ever: use self.ref.signal"
            )

    async def _exchange(self, letter: Letter[M], question: Question) -> Any:
        await self.address.mailbox.put(letter)
        # Between the end of `put` and this line no other task has run: the actor cannot have missed it.
        self.address.open.add(question)
        return await question.wait()

    async def _exchange_within(self, letter: Letter[M], question: Question, seconds: float) -> Any:
        clock = self.address.clock
        with anyio.CancelScope() as scope:
            alarm = clock.alarm(clock.now() + seconds, scope.cancel)
            try:
                return await self._exchange(letter, question)
            finally:
                alarm.cancel()
        raise AskTimeout(f"actor {self.key!r} did not answer within {seconds} s")

    def __repr__(self) -> str:
        return f"<Ref to {self.key!r}{'' if self.alive else ', ended'}>"
