"""Reactors as steps of another one: `compose` runs one, `fan_out` and `map_each` one for each element."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from rewound.errors import DefinitionError
from rewound.runtime.declare.binding import check_bind
from rewound.runtime.declare.children import ComposeDef, MapDef, MapOptions, Over
from rewound.runtime.declare.declared import declaration
from rewound.runtime.declare.decorators import options_of
from rewound.runtime.declare.reactor import Reactor, ReactorMeta
from rewound.runtime.declare.sources import SourceBase
from rewound.runtime.declare.steps import After, StepBase, StepOptions
from rewound.runtime.declare.wording import label

__all__ = ["BATCH_SIZE", "compose", "fan_out", "map_each"]

R = TypeVar("R")

BATCH_SIZE = 50
"""The most elements of a `fan_out` in flight unless it says otherwise, forward and in rollback."""


def compose(
    child: type[Reactor[R]],
    *,
    bind: Mapping[str, Any] | None = None,
    after: After | Sequence[After] = (),
) -> ComposeDef[R]:
    """Run a reactor as one step of this one, inside the same run.

    Its result is the step's. If it fails, it has rolled itself back before its parent does; once it has
    completed, it is undone by undoing its steps, newest first.

    Args:
        child: the reactor; one defined inside this class body is the same thing.
        bind: for inputs of the child: a step object, the name of a step or input, or `value(x)`.
            Those left out are looked up by their own name; then their default applies.
        after: a step, its name, or several, to wait for without reading their results.

    Raises:
        DefinitionError: this is no reactor that could be spawned, or an option is wrong.

    Example:
        >>> class Billing(Reactor[Report]):
        ...     @step
        ...     async def total(self) -> int: ...
        ...
        ...     audit = compose(Audit, bind={"amount": total})
    """
    subject, options = checked_child("compose", child, after)
    check_bind(subject, child, bind)
    return ComposeDef(child, bind or {}, options)


def fan_out(
    child: type[Reactor[R]],
    *,
    over: Over,
    bind: Mapping[str, Any] | None = None,
    batch_size: int = BATCH_SIZE,
    atomic: bool | None = None,
    fail_fast: bool | None = None,
    after: After | Sequence[After] = (),
) -> MapDef[R]:
    """Run a reactor for each element of something, several at the same time.

    Its result is `Results[R]`, in index order, however the elements ended. In a rollback every element
    that started is taken back, also several at the same time.

    Args:
        child: the reactor; one defined inside this class body is the same thing.
        over: a source, a step or an input that is a list, or another map, whose successes are iterated
            under their own indexes; the object or its name.
        bind: for inputs of the child: `element()`, a step object, the name of a step or input, or
            `value(x)`. Those left out are looked up by their own name; the element goes to the only
            required input that nothing else fills.
        batch_size: the most elements in flight at any instant, forward and in rollback. Default 50.
        atomic: whether the first element that fails fails the map, so that all are taken back (rule M5).
            If not, a failing element takes only itself back, and the map completes with an outcome for
            each. Default true.
        fail_fast: deprecated, the old name of `atomic`.
        after: a step, its name, or several, to wait for without reading their results.

    Raises:
        DefinitionError: this is no reactor that could be spawned, or an option is wrong.

    Example:
        >>> class Billing(Reactor[Results[Receipt]]):
        ...     orders: list[Order]
        ...     rate: int
        ...
        ...     charges = fan_out(ChargeOrder, over="orders", bind={"order": element(), "rate": "rate"})
    """
    subject, options = checked_child("fan_out", child, after)
    if isinstance(batch_size, bool) or not isinstance(cast("object", batch_size), int) or batch_size < 1:
        raise DefinitionError(f"{subject}: batch_size= takes a whole number from 1, not {batch_size!r}.")
    how = MapOptions(
        over=_iterated(subject, over),
        concurrent=True,
        batch_size=batch_size,
        atomic=_policy(subject, atomic, fail_fast),
    )
    check_bind(subject, child, bind, elements=True)
    return MapDef(child, bind or {}, options, how)


def map_each(
    child: type[Reactor[R]],
    *,
    over: Over,
    bind: Mapping[str, Any] | None = None,
    atomic: bool | None = None,
    fail_fast: bool | None = None,
    after: After | Sequence[After] = (),
    batch_size: None = None,
) -> MapDef[R]:
    """Run a reactor for each element of something, one after another in index order.

    Everything else is as for `fan_out`; in a rollback, too, elements are taken back one after another, the
    highest index first.

    Args:
        child: as for `fan_out`.
        over: as for `fan_out`.
        bind: as for `fan_out`.
        atomic: as for `fan_out`.
        fail_fast: as for `fan_out`.
        after: as for `fan_out`.
        batch_size: not for `map_each`: there is one element in flight.

    Raises:
        DefinitionError: this is no reactor that could be spawned, or an option is wrong.

    Example:
        >>> class Ship(Reactor[None]):
        ...     parcels: list[Parcel]
        ...     labels = map_each(PrintLabel, over="parcels")
    """
    subject, options = checked_child("map_each", child, after)
    if batch_size is not None:
        raise DefinitionError(
            f"{subject}: batch_size= is not for map_each, whose elements run one after another: use fan_out."
        )
    how = MapOptions(
        over=_iterated(subject, over),
        concurrent=False,
        batch_size=1,
        atomic=_policy(subject, atomic, fail_fast),
    )
    check_bind(subject, child, bind, elements=True)
    return MapDef(child, bind or {}, options, how)


def _iterated(subject: str, over: Over) -> Over:
    if not isinstance(cast("object", over), str | StepBase | SourceBase):
        raise DefinitionError(
            f"{subject}: over= takes a source, a step, a map, or a name, not {over!r}; "
            "make a list an input, or let a step return it."
        )
    return over


def _policy(subject: str, atomic: Any, fail_fast: Any) -> bool:
    """Decide `atomic` from what was given under either name (rule M10)."""
    if fail_fast is not None:
        if atomic is not None:
            raise DefinitionError(f"{subject}: fail_fast= is the old name of atomic=; give atomic= alone.")
        message = f"{subject}: fail_fast= is deprecated, write atomic={fail_fast!r}."
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        atomic = fail_fast
    if not isinstance(atomic, bool | None):
        raise DefinitionError(f"{subject}: atomic= takes True or False, not {atomic!r}.")
    return atomic is None or atomic


def checked_child(verb: str, child: Any, after: After | Sequence[After]) -> tuple[str, StepOptions]:
    """Check a child, and give what messages about it begin with, and the step's options.

    Raises:
        DefinitionError: it is no reactor that could be spawned, or `after` is wrong.
    """
    if not isinstance(cast("object", child), ReactorMeta):
        raise DefinitionError(f"{verb}() takes a Reactor, not {child!r}.")
    subject = f"{verb}({label(child)})"
    kind: Any = child
    if kind.__parameters__:
        example = f"class My{kind.__name__}({kind.__name__}[...])"
        raise DefinitionError(
            f"{subject}: {label(child)} is generic; take a named subclass of it, such as {example}."
        )
    if not declaration(kind).reactor.wired:
        raise DefinitionError(f"{subject}: {label(child)} has no steps; take a reactor that has some.")
    return subject, options_of(subject, None, None, after, (), cancel_on_failure=False)
