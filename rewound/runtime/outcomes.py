"""How a run, a step or a rollback ended: plain values, the same on every node and after recovery."""

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

T_co = TypeVar("T_co", covariant=True)

__all__ = [
    "Cancelled",
    "Completed",
    "ElementOutcome",
    "Failed",
    "Halted",
    "Outcome",
    "RollbackFailure",
    "StepError",
]


class StepError(Struct, frozen=True, array_like=True, omit_defaults=True):
    """Why a step failed, as data: what a `compensate` receives as `error`, and what the journal keeps.

    Args:
        type: the exception's class name, such as `CardDeclined`.
        message: the exception's text.
        step: the step that failed.
        attempts: how many attempts were made, the first included; 0 if the body never started.
        traceback: formatted text, at most 100 frames; empty if the body never started.
        fields: for invalid inputs, a dotted path to the message for each bad field.
    """

    type: str
    message: str
    step: str
    attempts: int = 1
    traceback: str = ""
    fields: dict[str, str] = {}


class RollbackFailure(Struct, frozen=True, array_like=True):
    """One undo, compensate or `undo_all` that could not be carried out; somebody has to look (rule S5).

    Args:
        step: whose handler failed.
        kind: which handler.
        error: the exception's class name.
        message: the exception's text.
        map_step: the map, if the step belongs to an element.
        element_index: the element's index in that map.
    """

    step: str
    kind: Literal["undo", "compensate", "undo_all"]
    error: str
    message: str
    map_step: str | None = None
    element_index: int | None = None


class ElementOutcome(Struct, Generic[T_co], frozen=True):
    """How one element of a map ended.

    Args:
        index: its place in the map, from 0.
        status: `completed`; `failed` (it took itself back); `halted` (it ended only itself, and nothing of
            it was undone); or `skipped` (it never started).
        value: the child's result, if it completed.
        error: why it failed, or with which reason it halted.
        rollback_failures: every undo and compensate of it that failed.
    """

    index: int
    status: Literal["completed", "failed", "halted", "skipped"]
    value: T_co | None = None
    error: StepError | None = None
    rollback_failures: list[RollbackFailure] = []


class Completed(Struct, Generic[T_co], frozen=True):
    """Every step succeeded (or was skipped); `value` is the run's result."""

    value: T_co
    rollback_failures: list[RollbackFailure] = []


class Failed(Struct, frozen=True):
    """A step failed and what came before it was taken back.

    Args:
        error: the class name of the first failure's exception.
        message: its text.
        step: the step that failed first.
        reactor: the reactor's stored name.
        attempts: attempts made by that step; 0 if its body never started.
        traceback: formatted text, at most 100 frames.
        inputs: the run's inputs, redacted.
        fields: for invalid inputs of a step, a dotted path to the message for each bad field.
        others: the failures of siblings that were in flight when the first one failed.
        rollback_failures: every undo and compensate that failed, in the order they were recorded.
    """

    error: str
    message: str
    step: str
    reactor: str
    attempts: int = 1
    traceback: str = ""
    inputs: dict[str, Any] = {}
    fields: dict[str, str] = {}
    others: list[StepError] = []
    rollback_failures: list[RollbackFailure] = []

    def __str__(self) -> str:
        """Say in one line what failed, and how much of the rollback did."""
        left = f"; {len(self.rollback_failures)} rollback failures" if self.rollback_failures else ""
        return f"{self.reactor}.{self.step}: {self.error}: {self.message}{left}"


class Halted(Struct, frozen=True):
    """A step raised `Halt`: the run ended cleanly and nothing was undone (rule S6)."""

    reason: str
    step: str
    rollback_failures: list[RollbackFailure] = []


class Cancelled(Struct, frozen=True):
    """The run was cancelled; `undone` tells whether its steps were taken back (rule V1)."""

    reason: str
    undone: bool = False
    rollback_failures: list[RollbackFailure] = []


Outcome = Completed[T_co] | Failed | Halted | Cancelled
