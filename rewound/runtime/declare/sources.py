"""Sources: async generators that feed a map, read page by page and only as fast as slots free up."""

import inspect
from collections.abc import AsyncIterator, Callable
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from rewound.errors import DefinitionError
from rewound.runtime.declare.member import Member

__all__ = ["SourceBase", "SourceDef", "source"]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SourceBase(Member):
    """A source, whatever its parameters and rows."""

    def __init__(self, fn: Callable[..., AsyncIterator[Any]]) -> None:
        super().__init__(fn.__doc__)
        self.fn = fn


class SourceDef(SourceBase, Generic[P, T_co]):
    """A source in the class body; called on an instance it is the plain generator.

    Type parameters: the generator's parameters after `self`, and what it yields.
    """

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, AsyncIterator[T_co]]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else MethodType(self.fn, instance)


def source(fn: Callable[Concatenate[Any, P], AsyncIterator[T]], /) -> SourceDef[P, T]:
    """Make an async generator the source of a map, which names it in `over=`.

    Like a step's, its parameters are by name the results of steps and inputs; `ctx` is the `Context`.
    Rows are stored before their elements start, so a recovered map neither repeats nor skips one. A
    source that was cut off before its end can only go on if it takes a `cursor`: it then yields
    `Page(items, cursor)`, and is given the cursor of the last page that was stored, or `None` to begin.
    Without one, a crash before the end fails the map with `SourceLost` (rule M4).

    Args:
        fn: the method.

    Raises:
        DefinitionError: it is no async generator.

    Example:
        >>> class Billing(Reactor[None]):
        ...     month: str
        ...
        ...     @source
        ...     async def rows(self, ctx: Context) -> AsyncIterator[Order]:
        ...         async for order in ctx.state["db"].orders(self.month):
        ...             yield order
        ...
        ...     charges = fan_out(ChargeOrder, over=rows)
    """
    given: Any = fn
    if isinstance(given, staticmethod | classmethod | type) or not callable(given):
        raise DefinitionError(f"@source decorates a function that takes self, not {given!r}.")
    bare, name = inspect.unwrap(fn), getattr(fn, "__name__", repr(fn))
    if inspect.isgeneratorfunction(bare):
        raise DefinitionError(f"@source {name} is a plain generator, which would block: write async def.")
    if not inspect.isasyncgenfunction(bare):
        raise DefinitionError(f"@source {name} has no yield.")
    return SourceDef(fn)
