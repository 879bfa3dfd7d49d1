"""What a step's body is called with, as data."""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

__all__ = ["MISSING", "NO_BODY", "Arg", "Call", "Made"]

MISSING: Final[Any] = object()
"""No own result was given."""


class Arg(Struct, frozen=True):
    """Where one argument comes from.

    Args:
        name: the parameter, or the input of a class step.
        source: a `step`'s result, an `input`, the `ctx`, the `error`, the step's `own` result (in an
            undo), a `value`, a map's `element`, or the `cursor` that its generator goes on from.
        key: the step or input; the map, for its element.
        value: the value.
    """

    name: str
    source: Literal["step", "input", "ctx", "error", "own", "value", "element", "cursor"]
    key: str = ""
    value: Any = None


class Made(Struct, frozen=True):
    """The class step that a body runs on: made afresh for each call.

    Args:
        kind: the class.
        args: its inputs; those left out have defaults.
        validates: whether inputs that do not fit are refused. Only forward: an undo or compensate never
            fails on what caused the rollback (rule S10).
    """

    kind: type[Any]
    args: tuple[Arg, ...]
    validates: bool


class Call(Struct, frozen=True):
    """A body, and where its arguments come from.

    Args:
        fn: the function; its first parameter is the reactor, or the class step.
        is_async: whether calling it gives a coroutine; otherwise it wants a thread.
        args: the other parameters.
        made: the class step, if the body is a method of one.
    """

    fn: Callable[..., Any]
    is_async: bool
    args: tuple[Arg, ...] = ()
    made: Made | None = None


def _nobody(*_: object) -> None:
    raise LookupError("a composed child or a map has no body to call")


NO_BODY: Final = Call(_nobody, is_async=False)
"""Stands where a step runs a child instead of a body, so that every plan has a call."""
