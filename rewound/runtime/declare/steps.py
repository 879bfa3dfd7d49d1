"""Steps as they stand in a class body; `.undo` and `.compensate` give those with a body their handlers."""

from collections.abc import Callable, Coroutine, Sequence
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.duration import Duration
from rewound.runtime.declare.handlers import HANDLER_TIMEOUT, HandlerDef, HandlerMaker, handler
from rewound.runtime.declare.member import Member
from rewound.runtime.declare.retry import ONCE, Retry

__all__ = ["After", "BodyDef", "StepBase", "StepDef", "StepOptions", "SyncStepDef", "guards_of"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


def guards_of(guards: Sequence[Any], subject: str) -> tuple[Any, ...]:
    """Return a declaration's guards.

    Raises:
        DefinitionError: there are any. Nothing takes them yet, and one that is silently not taken would let
            through what it is there to keep apart.
    """
    if guards:
        raise DefinitionError(f"{subject}: guards= has no effect in this version; leave it out.")
    return ()


class StepOptions(Struct, frozen=True):
    """What `@step(...)` was given, checked and in its plainest form; what it names is still unresolved."""

    retry: Retry = ONCE
    timeout: float | None = None
    after: tuple["StepBase[..., Any] | str", ...] = ()
    cancel_on_failure: bool = False
    guards: tuple[Any, ...] = ()
    collects: "StepBase[..., Any] | None" = None


class StepBase(Member, Generic[P, R_co]):
    """A step as it stands in a class body; `Checkout.reserve` names it to the runtime.

    Type parameters: the body's parameters after `self`, and its result.
    """

    def __init__(self, options: StepOptions, doc: str | None) -> None:
        super().__init__(doc)
        self.options = options


class BodyDef(StepBase[P, R_co]):
    """A step with a body of its own."""

    def __init__(self, fn: Callable[..., Any], options: StepOptions) -> None:
        super().__init__(options, fn.__doc__)
        self.fn = fn

    def on(self, instance: object) -> Callable[..., Any]:
        """Give the plain method on an instance, for calling a step by hand in a unit test."""
        return MethodType(self.fn, instance)

    @overload
    def undo(self, fn: Callable[Concatenate[Any, Q], R], /) -> HandlerDef[Q, R]: ...
    @overload
    def undo(self, /, *, retry: Retry | int | None = ..., timeout: Duration = ...) -> HandlerMaker: ...
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
        return handler(self, "undo", fn, retry, timeout)

    @overload
    def compensate(self, fn: Callable[Concatenate[Any, Q], R], /) -> HandlerDef[Q, R]: ...
    @overload
    def compensate(self, /, *, retry: Retry | int | None = ..., timeout: Duration = ...) -> HandlerMaker: ...
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
        return handler(self, "compensate", fn, retry, timeout)


class StepDef(BodyDef[P, R_co]):
    """A step whose body is `async`."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, Coroutine[Any, Any, R_co]]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self.on(instance)


class SyncStepDef(BodyDef[P, R_co]):
    """A step whose body is a plain function; it runs in a worker thread."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, R_co]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self.on(instance)


After = StepBase[..., Any] | str
"""A step object, or its name."""
