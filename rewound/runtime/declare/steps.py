"""Steps and their handlers as they stand in a class body; `.undo` and `.compensate` make the latter."""

from collections.abc import Callable, Coroutine
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from msgspec import Struct

from rewound.runtime.declare.duration import Duration, seconds
from rewound.runtime.declare.retry import ONCE, Retry, retry_of
from rewound.runtime.declare.signature import check_body
from rewound.runtime.declare.wording import label

__all__ = [
    "HANDLER_TIMEOUT",
    "After",
    "HandlerDef",
    "HandlerKind",
    "StepBase",
    "StepDef",
    "StepOptions",
    "SyncStepDef",
]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

HandlerKind = Literal["undo", "compensate"]
HANDLER_TIMEOUT = 60.0
"""Seconds that an attempt of an undo or compensate may take unless it says otherwise (rule S5)."""


class StepOptions(Struct, frozen=True):
    """What `@step(...)` was given, checked and in its plainest form; `after` is still unresolved."""

    retry: Retry = ONCE
    timeout: float | None = None
    after: tuple["StepBase[..., Any] | str", ...] = ()
    cancel_on_failure: bool = False
    guards: tuple[Any, ...] = ()


class HandlerDef(Generic[Q, R_co]):
    """An undo or compensate in the class body; called on an instance it is the plain method."""

    def __init__(
        self,
        target: "StepBase[..., Any]",
        kind: HandlerKind,
        fn: Callable[..., Any],
        retry: Retry | int | None,
        timeout: Duration,
    ) -> None:
        check_body(fn, f".{kind}")
        self.target = target
        self.kind: HandlerKind = kind
        self.fn = fn
        self.retry = retry_of(retry, f"{label(fn)}: retry")
        self.timeout = seconds(timeout, f"{label(fn)}: timeout")
        self.owner: type | None = None
        self.name = ""
        self.__doc__ = fn.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[Q, R_co]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else MethodType(self.fn, instance)


class _HandlerMaker(Protocol):
    def __call__(self, fn: Callable[Concatenate[Any, Q], R], /) -> HandlerDef[Q, R]: ...


class StepBase(Generic[P, R_co]):
    """A step as it stands in a class body; `Checkout.reserve` names it to the runtime.

    Type parameters: the body's parameters after `self`, and its result.
    """

    def __init__(self, fn: Callable[..., Any], options: StepOptions) -> None:
        self.fn = fn
        self.options = options
        self.owner: type | None = None
        self.name = ""
        self.__doc__ = fn.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        # the first name counts: a second one is an alias, which collecting the steps refuses
        if not self.name:
            self.owner, self.name = owner, name

    def on(self, instance: object) -> Callable[..., Any]:
        """Give the plain method on an instance, for calling a step by hand in a unit test."""
        return MethodType(self.fn, instance)

    @overload
    def undo(self, fn: Callable[Concatenate[Any, Q], R], /) -> HandlerDef[Q, R]: ...
    @overload
    def undo(self, /, *, retry: Retry | int | None = ..., timeout: Duration = ...) -> _HandlerMaker: ...
    def undo(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        retry: Retry | int | None = None,
        timeout: Duration = HANDLER_TIMEOUT,
    ) -> Any:
        """Declare how to reverse this step after it succeeded.

        The method may take this step's result (by the step's name, or as `result`), the results this
        step depends on, inputs, and `ctx`. Use it bare, or with options.

        Args:
            fn: the method.
            retry: how often to try. Default once.
            timeout: seconds (or a `timedelta`) per attempt. Default 60.

        Raises:
            DefinitionError: an option is wrong, or this is no method.

        Example:
            >>> class Checkout(Reactor[str]):
            ...     @step
            ...     async def reserve(self) -> str: ...
            ...
            ...     @reserve.undo
            ...     async def release(self, reserve: str) -> None: ...
        """
        return self._handler("undo", fn, retry, timeout)

    @overload
    def compensate(self, fn: Callable[Concatenate[Any, Q], R], /) -> HandlerDef[Q, R]: ...
    @overload
    def compensate(self, /, *, retry: Retry | int | None = ..., timeout: Duration = ...) -> _HandlerMaker: ...
    def compensate(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        retry: Retry | int | None = None,
        timeout: Duration = HANDLER_TIMEOUT,
    ) -> Any:
        """Declare how to clean up after this step failed, once, after its last attempt.

        The method may take `error` (a `StepError`), the results this step depends on, inputs, and
        `ctx`. Use it bare, or with options.

        Args:
            fn: the method.
            retry: how often to try. Default once.
            timeout: seconds (or a `timedelta`) per attempt. Default 60.

        Raises:
            DefinitionError: an option is wrong, or this is no method.

        Example:
            >>> class Checkout(Reactor[str]):
            ...     @step
            ...     async def charge(self) -> str: ...
            ...
            ...     @charge.compensate
            ...     async def void(self, error: StepError) -> None: ...
        """
        return self._handler("compensate", fn, retry, timeout)

    def _handler(
        self, kind: HandlerKind, fn: Callable[..., Any] | None, retry: Retry | int | None, timeout: Duration
    ) -> Any:
        def make(fn: Callable[..., Any]) -> HandlerDef[..., Any]:
            return HandlerDef(self, kind, fn, retry, timeout)

        return make if fn is None else make(fn)


class StepDef(StepBase[P, R_co]):
    """A step whose body is `async`."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, Coroutine[Any, Any, R_co]]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self.on(instance)


class SyncStepDef(StepBase[P, R_co]):
    """A step whose body is a plain function; it runs in a worker thread."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, R_co]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self.on(instance)


After = StepBase[..., Any] | str
"""A step object, or its name."""
