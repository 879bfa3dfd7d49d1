"""Undos and compensates as they stand in a class body."""

from collections.abc import Callable
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from rewound.runtime.declare.duration import Duration, seconds
from rewound.runtime.declare.member import Member
from rewound.runtime.declare.retry import Retry, retry_of
from rewound.runtime.declare.signature import check_body
from rewound.runtime.declare.wording import label

__all__ = ["HANDLER_TIMEOUT", "HandlerDef", "HandlerKind", "HandlerMaker", "handler"]

Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

HandlerKind = Literal["undo", "compensate", "undo_all"]
HANDLER_TIMEOUT = 60.0
"""Seconds that an attempt of an undo or compensate may take unless it says otherwise (rule S5)."""


class HandlerDef(Member, Generic[Q, R_co]):
    """An undo or compensate in the class body; called on an instance it is the plain method."""

    def __init__(
        self,
        target: Member,
        kind: HandlerKind,
        fn: Callable[..., Any],
        retry: Retry | int | None,
        timeout: Duration,
    ) -> None:
        check_body(fn, f".{kind}")
        super().__init__(fn.__doc__)
        self.target = target
        self.kind: HandlerKind = kind
        self.fn = fn
        self.retry = retry_of(retry, f"{label(fn)}: retry")
        self.timeout = seconds(timeout, f"{label(fn)}: timeout")

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[Q, R_co]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else MethodType(self.fn, instance)


class HandlerMaker(Protocol):
    """A decorator that was given options and waits for its method."""

    def __call__(self, fn: Callable[Concatenate[Any, Q], R], /) -> HandlerDef[Q, R]:
        """Declare the method."""
        ...


def handler(
    target: Member,
    kind: HandlerKind,
    fn: Callable[..., Any] | None,
    retry: Retry | int | None,
    timeout: Duration,
) -> Any:
    """Make a handler, or a decorator that will make it once it has the method."""

    def make(fn: Callable[..., Any]) -> HandlerDef[..., Any]:
        return HandlerDef(target, kind, fn, retry, timeout)

    return make if fn is None else make(fn)
