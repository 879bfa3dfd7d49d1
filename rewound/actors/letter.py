"""A message in its envelope."""

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from rewound.actors.address import Question

M = TypeVar("M")


class Letter(Generic[M]):
    """A message as `Actor.handle` gets it: with the way to answer.

    Args:
        message: what was sent.
        question: the ask that it came with, if it did.

    Example:
        >>> async def handle(self, letters):
        ...     await save([letter.message for letter in letters])
        ...     for letter in letters:
        ...         letter.reply("saved")
    """

    __slots__ = ("_question", "message")

    def __init__(self, message: M, question: Question | None = None) -> None:
        self.message = message
        self._question = question

    @property
    def expects_reply(self) -> bool:
        """Whether somebody asked and has not been answered yet."""
        return self._question is not None and not self._question.answered

    @property
    def asker(self) -> Hashable | None:
        """The key of the actor that asked; None for a tell, or an ask from outside an actor's own task."""
        if self._question is None or self._question.asker is None:
            return None
        return self._question.asker.key

    @property
    def question(self) -> Question | None:
        """The ask that the letter came with; None for a tell."""
        return self._question

    def reply(self, value: Any = None) -> None:
        """Answer the ask.

        Only the first answer counts. Harmless when nobody asked, or the asker has gone. May be called
        at any time while the actor lives, not only from `handle`.
        """
        if self._question is not None:
            self._question.answer(value)

    def fail(self, error: Exception) -> None:
        """Answer the ask with an exception, which `ask` raises; otherwise as `reply`."""
        if self._question is not None:
            self._question.answer(None, error)

    def __repr__(self) -> str:
        return f"Letter({self.message!r})"
