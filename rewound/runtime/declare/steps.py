"""The decorators `@step`, `.undo` and `.compensate`, and the descriptors they leave in the class."""

from collections.abc import Callable, Coroutine, Sequence
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.duration import Duration, seconds
from rewound.runtime.declare.retry import ONCE, Retry, retry_of
from rewound.runtime.declare.signature import check_body, is_async
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
    "options_of",
    "step",
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
        self.kind = kind
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
        if fn is not None:
            return HandlerDef[Any, Any](self, kind, fn, retry, timeout)
        return lambda fn: HandlerDef[Any, Any](self, kind, fn, retry, timeout)


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


class _StepMaker(Protocol):
    @overload
    def __call__(  # type: ignore[overload-overlap]  # async is tried first
        self, fn: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
    ) -> StepDef[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Any, P], R], /) -> SyncStepDef[P, R]: ...


@overload
def step(  # type: ignore[overload-overlap]  # async is tried first
    fn: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
) -> StepDef[P, R]: ...
@overload
def step(fn: Callable[Concatenate[Any, P], R], /) -> SyncStepDef[P, R]: ...
@overload
def step(
    *,
    retry: Retry | int | None = ...,
    timeout: Duration | None = ...,
    after: After | Sequence[After] = ...,
    cancel_on_failure: bool = ...,
    guards: Sequence[Any] = ...,
) -> _StepMaker: ...
def step(fn: Callable[..., Any] | None = None, /, **given: Any) -> Any:
    """Make a method a step of its reactor, bare or with options.

    A parameter is, by its name, the result of another step or an input; `ctx` is the `Context`.

    Args:
        fn: the method, `async` or plain (a plain one runs in a worker thread).
        retry: a `Retry`, or a number of attempts. Default: the step runs once.
        timeout: seconds (or a `timedelta`) that one attempt may take. Default: no limit.
        after: a step, its name, or several, to wait for without reading their results.
        cancel_on_failure: whether a failing sibling cancels this step instead of waiting for it.
        guards: what must be taken before the body starts.

    Raises:
        DefinitionError: an option is wrong, or this is no method.

    Example:
        >>> class Greet(Reactor[str]):
        ...     name: str
        ...
        ...     @step(retry=3, timeout=10)
        ...     async def hello(self) -> str:
        ...         return f"hello {self.name}"
    """
    if fn is not None:
        return _define(fn, given)
    return lambda fn: _define(fn, given)


def _define(fn: Callable[..., Any], given: dict[str, Any]) -> StepBase[..., Any]:
    check_body(fn, "@step")
    kind = StepDef[Any, Any] if is_async(fn) else SyncStepDef[Any, Any]
    return kind(fn, options_of(label(fn), **given))


def options_of(
    subject: str,
    *,
    retry: Retry | int | None = None,
    timeout: Duration | None = None,
    after: After | Sequence[After] = (),
    cancel_on_failure: bool = False,
    guards: Sequence[Any] = (),
) -> StepOptions:
    """Check a step's options and bring them to their plainest form.

    Args:
        subject: what an error message begins with, such as `Checkout.charge`.
        retry: as for `step`.
        timeout: as for `step`.
        after: as for `step`.
        cancel_on_failure: as for `step`.
        guards: as for `step`.

    Raises:
        DefinitionError: an option is wrong.
    """
    several = tuple(after) if isinstance(after, list | tuple) else (after,)
    for each in several:
        if not isinstance(each, str | StepBase):
            raise DefinitionError(f"{subject}: after= takes a step or its name, not {_shown(each)}.")
    limit = None if timeout is None else seconds(timeout, f"{subject}: timeout")
    return StepOptions(retry_of(retry, f"{subject}: retry"), limit, several, cancel_on_failure, tuple(guards))


def _shown(given: object) -> str:
    if isinstance(given, HandlerDef):
        return f"the {given.kind} {label(given.fn)}"
    return repr(given)
