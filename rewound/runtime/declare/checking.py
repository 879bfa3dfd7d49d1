"""Checking values against inputs: by re-decoding, so that a run sees what a recovered one would."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from rewound.errors import EncodeError, InputError
from rewound.runtime.declare.codec import ModelError, decode_any, encode, load_model
from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.losses import hints_of, lost
from rewound.runtime.declare.mismatch import arms, text

__all__ = ["Checked", "check_value", "checked", "collect", "decode_field", "fit", "lenient"]

T = TypeVar("T")

_PLACE = re.compile(r"(?P<message>.*?)(?: - at `(?:key` in `)?\$(?P<path>.*)`)?", re.DOTALL)


class Checked(NamedTuple):
    """A value that fits: as it came back from decoding, and encoded."""

    decoded: Any
    raw: bytes


def collect(
    fields: Iterable[FieldPlan],
    check: Callable[[FieldPlan], T],
    subject: str,
    refused: Mapping[str, str] | None = None,
) -> dict[str, T]:
    """Do something with every input, and report all that fail together.

    Args:
        fields: the inputs.
        check: raises `InputError` for one that is bad.
        subject: what was called, for the error.
        refused: what is known to be bad already.

    Raises:
        InputError: with every bad field, by dotted path.
    """
    found: dict[str, T] = {}
    bad = dict(refused or {})
    for field in fields:
        try:
            found[field.name] = check(field)
        except InputError as error:
            bad |= error.fields
    if bad:
        raise InputError(subject, bad)
    return found


def checked(fields: Iterable[FieldPlan], given: Mapping[str, Any], subject: str) -> dict[str, Checked]:
    """Check the value of every input.

    Raises:
        InputError: with every bad field, by dotted path.
    """
    return collect(fields, lambda field: check_value(field, given[field.name]), subject)


def check_value(field: FieldPlan, value: Any) -> Checked:
    """Check one input's value by encoding and decoding it.

    Raises:
        InputError: it cannot be stored, does not fit, or would come back as something else.
    """
    decoded = fit(field, value)
    # the decoded value, not the given one: a mapping and an instance are then stored alike
    return Checked(decoded, encode(decoded, field.name))


def fit(field: FieldPlan, value: Any) -> Any:
    """Give one input's value as it comes back from storage.

    Raises:
        InputError: as `check_value`.
    """
    try:
        raw = encode(value, field.name)
    except EncodeError as error:
        raise InputError(field.name, {field.name: str(error)}) from error
    decoded = decode_field(field, raw)
    found = lost(value, field.type) if field.loose else None
    if found is not None:
        kind = text(type(found.value))
        why = f"a {kind} would come back as something else; annotate it as {kind}"
        raise InputError(field.name, {field.name + found.path: why})
    return decoded


def decode_field(field: FieldPlan, raw: bytes) -> Any:
    """Decode one input's value.

    Raises:
        InputError: with every part of it that does not fit.
    """
    try:
        return field.decode(raw)
    except Exception as error:  # a model's own validators may raise anything
        why = _explain(decode_any(raw), field.type, field.name) or {field.name: _message(error)[0]}
        raise InputError(field.name, why) from error


def lenient(fields: Iterable[FieldPlan], given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values where they fit their input, and keep them as they are where not (rule S10)."""
    return {field.name: _converted(field, given[field.name]) for field in fields}


def _converted(field: FieldPlan, value: Any) -> Any:
    try:
        return field.decode(encode(value, field.name))
    except Exception:  # noqa: BLE001  # a rollback must not fail on what caused it
        return value


def _explain(raw: Any, annotation: Any, path: str) -> dict[str, str]:
    """Find every part of plain data that does not fit, where msgspec names only the first."""
    try:
        msgspec.convert(raw, annotation, dec_hook=load_model)
    except Exception as error:  # noqa: BLE001  # a model's own validators may raise anything
        message, place = _message(error)
        inner: dict[str, str] = {}
        for name, part, kind in _inside(raw, annotation):
            where = f"{path}.{name}"
            inner |= {where: "required"} if part is msgspec.UNSET else _explain(part, kind, where)
        if isinstance(error.__cause__, ModelError):
            inner = {f"{path}{place}.{where}": why for where, why in error.__cause__.faults.items()}
        return inner or {path + place: message}
    return {}


def _message(error: Exception) -> tuple[str, str]:
    """Split what msgspec says into the message and the dotted path."""
    found = _PLACE.fullmatch(str(error)) if isinstance(error, msgspec.DecodeError) else None
    if found is None:
        return f"{type(error).__name__}: {error}", ""
    return found["message"], re.sub(r"\[(.*?)\]", r".\1", found["path"] or "")


def _inside(raw: Any, annotation: Any) -> Iterator[tuple[str, Any, Any]]:
    """List the parts of plain data with what each should be; `UNSET` for one that is missing."""
    kinds = [arm for arm in arms(annotation) if arm is not type(None)]
    kind = kinds[0] if len(kinds) == 1 else None
    bare, arguments, held = get_origin(kind) or kind, get_args(kind), raw.__class__
    if held is list and arguments and arguments[1:] in ((), (...,)):
        yield from ((str(index), part, arguments[0]) for index, part in enumerate(raw))
    elif held is dict and _is_struct(bare):
        yield from _struct_parts(raw, kind)
    elif held is dict and (hasattr(bare, "__dataclass_fields__") or hasattr(bare, "__total__")):
        yield from ((name, raw[name], hint) for name, hint in hints_of(kind).items() if name in raw)
    elif held is dict and len(arguments) > 1:
        yield from ((str(key), part, arguments[1]) for key, part in raw.items())


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, msgspec.StructMeta) and not kind.__struct_config__.array_like


def _struct_parts(raw: Any, kind: Any) -> Iterator[tuple[str, Any, Any]]:
    for field in msgspec.structs.fields(kind):
        if field.encode_name in raw or field.required:
            yield field.encode_name, raw.get(field.encode_name, msgspec.UNSET), field.type
