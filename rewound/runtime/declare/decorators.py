"""The decorator `@step`, and the options that it and `use` share."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from rewound.errors import DefinitionError
from rewound.runtime.declare.duration import Duration, seconds
from rewound.runtime.declare.handlers import HandlerDef
from rewound.runtime.declare.retry import Retry, retry_of
from rewound.runtime.declare.signature import check_body, is_async
from rewound.runtime.declare.sources import SourceBase
from rewound.runtime.declare.steps import After, StepBase, StepDef, StepOptions, SyncStepDef, guards_of
from rewound.runtime.declare.wording import label

__all__ = ["StepMaker", "options_of", "step"]

P = ParamSpec("P")
R = TypeVar("R")


class StepMaker(Protocol):
    """A decorator that was given options and waits for its method."""

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
) -> StepMaker: ...
def step(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    retry: Retry | int | None = None,
    timeout: Duration | None = None,
    after: After | Sequence[After] = (),
    cancel_on_failure: bool = False,
    guards: Sequence[Any] = (),
) -> Any:
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

    def define(fn: Callable[..., Any]) -> StepBase[..., Any]:
        check_body(fn, "@step")
        options = options_of(label(fn), retry, timeout, after, guards, cancel_on_failure=cancel_on_failure)
        return StepDef(fn, options) if is_async(fn) else SyncStepDef(fn, options)

    return define if fn is None else define(fn)


def options_of(
    subject: str,
    retry: Retry | int | None,
    timeout: Duration | None,
    after: After | Sequence[After],
    guards: Sequence[Any],
    *,
    cancel_on_failure: bool,
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
    several: tuple[Any, ...] = tuple(after) if isinstance(after, list | tuple) else (after,)
    for each in several:
        if not isinstance(each, str | StepBase):
            raise DefinitionError(f"{subject}: after= takes a step or its name, not {_shown(each)}.")
    limit = None if timeout is None else seconds(timeout, f"{subject}: timeout")
    taken = guards_of(guards, subject)
    return StepOptions(retry_of(retry, f"{subject}: retry"), limit, several, cancel_on_failure, taken)


def _shown(given: object) -> str:
    if isinstance(given, HandlerDef):
        return f"the {given.kind} {label(given.fn)}"
    if isinstance(given, SourceBase):
        return f"the source {label(given.fn)}"
    return repr(given)
