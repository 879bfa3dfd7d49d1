"""Looking into values: which part cannot be stored, and which would come back as something else."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from msgspec import Struct

from rewound.runtime.declare.annotations import substitute
from rewound.runtime.declare.markers import Redact
from rewound.runtime.declare.mismatch import arms

__all__ = ["Offence", "Part", "hints_of", "lost", "offence", "parts"]

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


class Part(NamedTuple):
    """A value inside another: its path from there, itself, and what the annotation says of it."""

    path: str
    value: Any
    annotation: Any


class Offence(NamedTuple):
    """The value that is to blame, and its path."""

    path: str
    value: Any


def parts(value: Any, annotation: Any = Any) -> Iterator[Part]:
    """List what a value directly contains, each part with the annotation that applies to it.

    Struct-like values (structs, dataclasses, attrs classes, named tuples, typed dicts, pydantic models)
    are asked for their own annotations; containers take theirs from the given one.
    """
    kind, own = _arm_for(value, annotation), _kind(value)
    if isinstance(value, dict):
        yield from _items(value, kind)
    elif _is_record(value):
        hints = hints_of(kind if get_origin(kind) is own else own)
        for name in _names(value):
            yield Part(f".{name}", getattr(value, name, None), hints.get(name, Any))
    elif issubclass(own, list | tuple | set | frozenset):
        yield from _elements(value, kind)


def _kind(value: Any) -> Any:
    return value.__class__


def _items(value: Any, kind: Any) -> Iterator[Part]:
    hints = hints_of(kind) if hasattr(kind, "__total__") else {}
    keys, values = (*get_args(kind), Any, Any)[:2]
    for key, inner in value.items():
        yield Part(f"[{key!r} as key]", key, keys)
        yield Part(f".{key}" if isinstance(key, str) else f"[{key!r}]", inner, hints.get(key, values))


def _elements(value: Any, kind: Any) -> Iterator[Part]:
    given = get_args(kind)
    fixed = issubclass(type(value), tuple) and given[1:] != (...,) and given
    for index, inner in enumerate(value):
        annotation = given[min(index, len(given) - 1)] if fixed else (*given, Any)[0]
        yield Part(f"[{index}]", inner, annotation)


def _arm_for(value: Any, annotation: Any) -> Any:
    """Pick the member of a union that the value is of; the only one, if it is no union."""
    members = arms(annotation)
    for each in members:
        kind = get_origin(each) or each
        if isinstance(kind, type) and kind is not Any and _is_instance(value, kind):
            return each
    return members[0] if len(members) == 1 else Any


def _is_instance(value: Any, kind: type) -> bool:
    try:
        return isinstance(value, kind)
    except TypeError:  # typed dicts and some protocols cannot be asked
        return isinstance(value, dict) and hasattr(kind, "__total__")


def _is_record(value: Any) -> bool:
    kind = _kind(value)
    return (
        isinstance(value, Struct)
        or is_dataclass(kind)
        or any(hasattr(kind, name) for name in ("__attrs_attrs__", "model_fields", "_fields"))
    )


def _names(value: Any) -> tuple[str, ...]:
    kind = _kind(value)
    if isinstance(value, Struct):
        return value.__struct_fields__
    for table in ("__dataclass_fields__", "model_fields", "_fields"):
        if hasattr(kind, table):
            return tuple(getattr(kind, table))
    return tuple(each.name for each in kind.__attrs_attrs__)


def hints_of(kind: Any) -> dict[str, Any]:
    """Read a struct-like class's annotations, type arguments filled in."""
    hints = _class_hints(get_origin(kind) or kind)
    bound = dict(zip(getattr(get_origin(kind), "__parameters__", ()), get_args(kind), strict=False))
    return {name: substitute(hint, bound) for name, hint in hints.items()} if bound else hints


@lru_cache(maxsize=1024)
def _class_hints(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "model_fields"):  # a pydantic model has resolved them itself
        return {
            name: Annotated[field.annotation, *field.metadata, None]
            for name, field in kind.model_fields.items()
        }
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError:  # nobody can tell which fields are secret, so all of them are
        return dict.fromkeys(inspect.get_annotations(kind), Annotated[Any, Redact])


def offence(value: Any, encode: Callable[[Any], bytes]) -> Offence | None:
    """Find the innermost part that an encoder refuses.

    Args:
        value: what was refused as a whole.
        encode: raises for a value it cannot encode.
    """
    for part in parts(value):
        try:
            encode(part.value)
        except Exception:  # noqa: BLE001  # the reason was raised before; here only the place is wanted
            inner = offence(part.value, encode) or Offence("", part.value)
            return Offence(part.path + inner.path, inner.value)
    return None


def lost(value: Any, annotation: Any) -> Offence | None:
    """Find a part of which the annotation says nothing and that would come back as something else.

    Args:
        value: what a step returned.
        annotation: what it is annotated with.
    """
    if _is_native(value):
        return None
    untyped = any(each is Any or each is object for each in arms(annotation))
    if untyped and type(value) not in (list, dict):
        return Offence("", value)
    for part in parts(value, annotation):
        found = lost(part.value, part.annotation)
        if found is not None:
            return Offence(part.path + found.path, found.value)
    return None


def _is_native(value: Any) -> bool:
    """Tell whether msgpack keeps a value as it is, whatever the annotation; most results are like that."""
    kind = _kind(value)
    if kind in _PLAIN:
        return True
    if kind is dict:
        return all(type(key) in _PLAIN and _is_native(inner) for key, inner in value.items())
    if kind is list:
        return all(_is_native(inner) for inner in value)
    return kind is datetime and value.tzinfo is not None
