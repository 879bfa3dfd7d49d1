"""Children as they stand in a class body: reactors that run inside their parent's run."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar, overload

from msgspec import Struct, structs

from rewound.errors import DefinitionError
from rewound.runtime.declare.decorators import StepMaker, step
from rewound.runtime.declare.duration import Duration
from rewound.runtime.declare.handlers import HANDLER_TIMEOUT, HandlerDef, HandlerMaker, handler
from rewound.runtime.declare.retry import Retry
from rewound.runtime.declare.sources import SourceBase
from rewound.runtime.declare.steps import After, StepBase, StepDef, StepOptions, SyncStepDef
from rewound.runtime.declare.wording import label
from rewound.runtime.results import Results

__all__ = ["ChildDef", "ComposeDef", "MapDef", "MapOptions", "Over"]

P = ParamSpec("P")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)

Over = SourceBase | StepBase[..., Any] | str
"""What a map iterates: a source, a step or another map, or the name of one of these or of an input."""


class ChildDef(StepBase[..., R_co]):
    """A step that runs a reactor instead of a body, which takes back its own steps (rules C1, M6)."""

    def __init__(self, child: Any, bind: Mapping[str, Any], options: StepOptions) -> None:
        super().__init__(options, child.__doc__)
        self.child = child
        self.bind = dict(bind)

    @property
    def undo(self) -> NoReturn:
        """Refuse an undo: the child's steps have theirs."""
        raise self._no_handler("undo")

    @property
    def compensate(self) -> NoReturn:
        """Refuse a compensate: the child's steps have theirs."""
        raise self._no_handler("compensate")

    def _no_handler(self, kind: str) -> DefinitionError:
        child = label(self.child)
        return DefinitionError(f".{kind} of a child: give the steps of {child} their own @step_name.{kind}.")


class ComposeDef(ChildDef[R_co]):
    """A composed child; `Billing.audit` names it to the runtime. Type parameter: its result."""


class MapOptions(Struct, frozen=True):
    """What a map was given, checked and in its plainest form; `over` is still unresolved.

    Args:
        over: what it iterates.
        concurrent: whether it is a `fan_out`.
        batch_size: the most elements in flight.
        atomic: whether one failing element fails the map.
    """

    over: Over
    concurrent: bool
    batch_size: int
    atomic: bool


class MapDef(ChildDef[Results[R_co]]):
    """A map; `Billing.charges` names it to the runtime. Type parameter: the result of one element."""

    def __init__(self, child: Any, bind: Mapping[str, Any], options: StepOptions, how: MapOptions) -> None:
        super().__init__(child, bind, options)
        self.how = how

    def _no_handler(self, kind: str) -> DefinitionError:
        remedy = "or take all of them back in one call with .undo_all"
        return DefinitionError(f"{str(super()._no_handler(kind))[:-1]}, {remedy}.")

    @overload
    def collect(  # type: ignore[overload-overlap]  # async is tried first
        self, fn: Callable[Concatenate[Any, P], Coroutine[Any, Any, S]], /
    ) -> StepDef[P, S]: ...
    @overload
    def collect(self, fn: Callable[Concatenate[Any, P], S], /) -> SyncStepDef[P, S]: ...
    @overload
    def collect(
        self,
        /,
        *,
        retry: Retry | int | None = ...,
        timeout: Duration | None = ...,
        after: After | Sequence[After] = ...,
        guards: Sequence[Any] = ...,
    ) -> StepMaker: ...
    def collect(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        after: After | Sequence[After] = (),
        guards: Sequence[Any] = (),
    ) -> Any:
        """Make a method the step that turns this map's results into one value.

        It runs once, when the map has completed, and is a step of its own name, with a result, an undo
        and readers like any other. If it fails, the map fails: its elements are taken back (rule M7).

        Args:
            fn: the method; it takes the results by the map's name.
            retry: as for `step`.
            timeout: as for `step`.
            after: as for `step`.
            guards: as for `step`.

        Raises:
            DefinitionError: an option is wrong, or this is no method.

        Example:
            >>> class Billing(Reactor[int]):
            ...     orders: list[Order]
            ...     charges = fan_out(ChargeOrder, over="orders")
            ...
            ...     @charges.collect
            ...     async def total(self, charges: Results[Receipt]) -> int:
            ...         return sum([receipt.amount async for receipt in charges])
        """
        make: Any = step(retry=retry, timeout=timeout, after=after, guards=guards)

        def define(fn: Callable[..., Any]) -> StepBase[..., Any]:
            made: StepBase[..., Any] = make(fn)
            made.options = structs.replace(made.options, collects=self)
            return made

        return define if fn is None else define(fn)

    @overload
    def undo_all(self, fn: Callable[Concatenate[Any, P], S], /) -> HandlerDef[P, S]: ...
    @overload
    def undo_all(self, /, *, retry: Retry | int | None = ..., timeout: Duration = ...) -> HandlerMaker: ...
    def undo_all(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        retry: Retry | int | None = None,
        timeout: Duration = HANDLER_TIMEOUT,
    ) -> Any:
        """Declare how to take all completed elements back in one call, in place of their own undos.

        The method may take the results (by the map's name, or as `result`), the results this map depends
        on, inputs, and `ctx`. An element that fails still takes itself back (rules M6, R12).

        Args:
            fn: the method.
            retry: how often to try. Default once.
            timeout: seconds (or a `timedelta`) per attempt. Default 60.

        Raises:
            DefinitionError: an option is wrong, or this is no method.

        Example:
            >>> class Billing(Reactor[None]):
            ...     orders: list[Order]
            ...     charges = fan_out(ChargeOrder, over="orders")
            ...
            ...     @charges.undo_all
            ...     async def refund_all(self, charges: Results[Receipt], ctx: Context) -> None: ...
        """
        return handler(self, "undo_all", fn, retry, timeout)
