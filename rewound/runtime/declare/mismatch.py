"""Types as text, and whether two of them provably do not fit. In doubt they fit."""

import types
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import Struct

from rewound.runtime.declare.markers import Skipped
from rewound.runtime.results import Results

__all__ = ["arms", "bare", "mismatched", "text", "unskipped"]

_UNIONS = (Union, types.UnionType)
_CONTAINERS = (list, set, frozenset, dict, Results)


def bare(annotation: Any) -> Any:
    """Take off what does not change the values: `Annotated`, `NewType`, a named alias."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif hasattr(annotation, "__value__"):  # `type Amount = int`
            annotation = annotation.__value__
        else:
            return type(None) if annotation is None else annotation


def arms(annotation: Any) -> tuple[Any, ...]:
    """List the members of a union; anything else is a union of itself."""
    annotation = bare(annotation)
    if get_origin(annotation) in _UNIONS:
        return tuple(arm for each in get_args(annotation) for arm in arms(each))
    return (annotation,)


def unskipped(annotation: Any) -> Any:
    """Give `T` for `T | Skipped[T]`: what readers of the step get."""
    if annotation is Skipped:
        return Any
    if get_origin(annotation) is Skipped:
        return get_args(annotation)[0]
    if get_origin(annotation) not in _UNIONS:
        return annotation
    kept = [arm for arm in get_args(annotation) if not _is_skipped(arm)]
    if len(kept) == len(get_args(annotation)):
        return annotation
    return Union[tuple(kept)] if kept else Any  # noqa: UP007  # built from values, not written


def _is_skipped(annotation: Any) -> bool:
    return annotation is Skipped or get_origin(annotation) is Skipped


def text(annotation: Any) -> str:
    """Write a type as its author would, without modules: the same in every process and release.

    Example:
        >>> text(dict[str, int | None])
        'dict[str, int | None]'
    """
    annotation = bare(annotation)
    if annotation is type(None):
        return "None"
    if get_origin(annotation) in _UNIONS:
        return " | ".join(text(arm) for arm in get_args(annotation))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None:
        return _name(annotation)
    inner = ", ".join(repr(each) if origin is Literal else text(each) for each in arguments)
    return f"{_name(origin)}[{inner}]" if arguments else _name(origin)


def _name(annotation: Any) -> str:
    if annotation is Ellipsis:
        return "..."
    name = (
        getattr(annotation, "__qualname__", None) or getattr(annotation, "__name__", None) or str(annotation)
    )
    return str(name).rpartition("<locals>.")[2]


def mismatched(source: Any, reader: Any) -> bool:
    """Tell whether no value of the one type can be of the other.

    Args:
        source: what a step or input is annotated with.
        reader: what the parameter that receives it is annotated with.
    """
    return all(_apart(given, taken) for given in arms(source) for taken in arms(reader))


def _apart(source: Any, reader: Any) -> bool:
    given, taken = _kind(source), _kind(reader)
    if given is None or taken is None or (given is int and taken is float):
        return False
    try:
        related = issubclass(given, taken) or issubclass(taken, given)
    except TypeError:  # a Protocol with attributes cannot be asked
        return False
    if not related:
        return _concrete(given) and _concrete(taken)
    if given is taken and given in _CONTAINERS:
        pairs = zip(get_args(bare(source)), get_args(bare(reader)), strict=False)
        return any(mismatched(one, other) for one, other in pairs)
    return False


def _kind(annotation: Any) -> type | None:
    """Give the class whose instances the values are, or nothing if that is not known."""
    origin = get_origin(annotation)
    if origin is Literal:
        kinds: set[Any] = {type(each) for each in get_args(annotation)}
        return kinds.pop() if len(kinds) == 1 else None
    kind = origin or annotation
    if kind is Any or isinstance(kind, TypeVar) or not isinstance(kind, type):
        return None
    return dict if hasattr(kind, "__total__") and issubclass(kind, dict) else kind


def _concrete(kind: Any) -> bool:
    """Tell whether values are exactly of this class, so that no subclass can be both kinds.

    A decoded value is: built-in types, structs, enums and dataclasses do not arrive as anything else.
    """
    return (
        kind.__module__ in {"builtins", "datetime", "decimal", "uuid"}
        or issubclass(kind, Struct | Enum | Results)
        or hasattr(kind, "__dataclass_fields__")
        or hasattr(kind, "__attrs_attrs__")
    )
