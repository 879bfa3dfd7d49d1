"""What users write: a class whose `receive` handles one message at a time."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, ClassVar, Generic, TypeVar

from rewound.actors.letter import Letter
from rewound.actors.ref import Ref
from rewound.errors import ActorError, RewoundError

M = TypeVar("M")


class Actor(Generic[M]):
    """One task that reads one mailbox. Subclass it, give it a `key`, write `receive`.

    Only the actor's own task touches its attributes, so they need no lock. An exception that leaves a
    method is a crash: it is logged, and the supervisor starts a fresh actor if it has a factory for it.
    One exception is not: a `RewoundError` that `receive` raises in answer to an `ask` is a refusal,
    which the asker gets; the actor carries on. (Any other exception reaches the asker too, and is a crash.)

    Attributes:
        key: names the actor in its supervisor; set it on the class or in `__init__`.
        mailbox_capacity: the most messages that may lie unread before `tell` waits. Default 1024.

    Example:
        >>> class Counter(Actor[int]):
        ...     key = "counter"
        ...     total = 0
        ...
        ...     async def receive(self, message: int) -> int:
        ...         self.total += message
        ...         return self.total
    """

    key: Hashable
    mailbox_capacity: ClassVar[int] = 1024

    _ref: Ref[M] | None = None  # on the class: so a subclass's `__init__` need not call this one's

    async def receive(self, message: M) -> Any:
        """Handle one message; what is returned answers an `ask`."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a `receive` (or `handle`) to take {message!r}"
        )

    async def started(self) -> None:
        """Do what must precede the first message; runs in the actor's task, at a restart too."""

    async def stopped(self) -> None:
        """Do what must follow the last message of an ordered stop; not called after a crash or a kill.

        What must be closed in every case belongs into `run`.
        """

    async def run(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Live; override to put context managers around the actor's life.

        Args:
            serve: calls `started`, handles mail until the actor is stopped, then calls `stopped`.

        Example:
            >>> async def run(self, serve):
            ...     async with anyio.create_task_group() as self.tasks:
            ...         await serve()
            ...         self.tasks.cancel_scope.cancel()
        """
        await serve()

    async def handle(self, letters: list[Letter[M]]) -> None:
        """Handle all mail that was waiting: `receive` each message in order, and reply to those who asked.

        Override it to treat mail by the batch, for instance to save once and then reply to all. A crash
        loses the batch that an overridden `handle` was given; this one loses only the message that
        crashed it.
        """
        for done, letter in enumerate(letters, 1):
            try:
                await self._answer(letter)
            except BaseException:
                self.ref.address.unread = letters[done:]
                raise

    async def _answer(self, letter: Letter[M]) -> None:
        try:
            answer = await self.receive(letter.message)
        except Exception as error:
            letter.fail(error)
            if isinstance(error, RewoundError) and letter.question is not None:
                return
            raise
        letter.reply(answer)

    @property
    def ref(self) -> Ref[M]:
        """The actor's own handle, to give to others.

        Raises:
            ActorError: the actor was not started.
        """
        if self._ref is None:
            raise ActorError(f"{type(self).__name__} has not been started; pass it to Supervisor.start first")
        return self._ref

    @property
    def pending(self) -> int:
        """How many messages have arrived since the batch in hand.

        Raises:
            ActorError: the actor was not started.
        """
        return len(self.ref.address.mailbox)

    def stop(self) -> None:
        """Take no more mail, and end when the current batch is done.

        Mail that has arrived since the batch began is dropped and its askers get `ActorStopped`: an actor
        that stops because it is idle looks at `pending` first.

        Raises:
            ActorError: the actor was not started.
        """
        self.ref.address.close()

    def attach(self, ref: Ref[M]) -> None:
        """Give the actor its handle; the supervisor does this.

        Raises:
            ActorError: the actor has one. Each start needs an actor object of its own.
        """
        if self._ref is not None:
            raise ActorError(f"actor {self._ref.key!r} was started before; start a new {type(self).__name__}")
        self._ref = ref
