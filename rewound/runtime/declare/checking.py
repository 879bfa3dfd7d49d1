"""Checking values against inputs: by re-decoding, so that a run sees what a recovered one would."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from rewound.errors import EncodeError, InputError
from rewound.runtime.declare.codec import decode_any, encode, load_model
from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.losses import hints_of, lost
from rewound.runtime.declare.mismatch import arms, text

__all__ = ["Checked", "checked", "explain", "lenient"]

_PLACE = re.compile(r"^(?P<message>.*?)(?: - at `(?:key` in `)?\$(?P<path>.*)`)?$", re.DOTALL)


class Checked(NamedTuple):
    """A value that fits: as it came back from decoding, and encoded."""

    decoded: Any
    raw: bytes


def checked(fields: Iterable[FieldPlan], given: Mapping[str, Any], subject: str) -> dict[str, Checked]:
    """Check the value of every input.

    Args:
        fields: the inputs.
        given: a value for each.
        subject: what was called, for the error.

    Raises:
        InputError: with every bad field, by dotted path.
    """
    fit: dict[str, Checked] = {}
    refused: dict[str, str] = {}
    for field in fields:
        result = _check(field, given[field.name])
        if isinstance(result, Checked):
            fit[field.name] = result
        else:
            refused |= result
    if refused:
        raise InputError(subject, refused)
    return fit


def _check(field: FieldPlan, value: Any) -> Checked | dict[str, str]:
    try:
        raw = encode(value, field.name)
    except EncodeError as error:
        return {field.name: str(error)}
    try:
        decoded = field.decode(raw)
    except Exception as error:  # noqa: BLE001  # a model's own validators may raise anything
        return explain(decode_any(raw), field.type, field.name) or {field.name: _message(error)[0]}
    found = lost(value, field.type) if field.loose else None
    if found is not None:
        kind = text(type(found.value))
        return {field.name + found.path: f"a {kind} would come back as something else; annotate it as {kind}"}
    return Checked(decoded, raw)


def lenient(fields: Iterable[FieldPlan], given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values where they fit their input, and keep them as they are where not (rule S10)."""
    return {field.name: _converted(field, given[field.name]) for field in fields}


def _converted(field: FieldPlan, value: Any) -> Any:
    try:
        return field.decode(encode(value, field.name))
    except Exception:  # noqa: BLE001  # a rollback must not fail on what caused it
        return value


def explain(raw: Any, annotation: Any, path: str) -> dict[str, str]:
    """Find every part of a decoded value that does not fit, where msgspec names only the first.

    Args:
        raw: plain data.
        annotation: what it should be.
        path: where it stands.

    Returns:
        A dotted path to the message for each bad part; nothing if all fits.
    """
    try:
        msgspec.convert(raw, annotation, dec_hook=load_model)
    except Exception as error:  # noqa: BLE001  # a model's own validators may raise anything
        message, place = _message(error)
        inner: dict[str, str] = {}
        for name, part, kind in _inside(raw, annotation):
            inner |= (
                {f"{path}.{name}": "required"}
                if part is msgspec.UNSET
                else explain(part, kind, f"{path}.{name}")
            )
        return inner or {path + place: message}
    return {}


def _message(error: Exception) -> tuple[str, str]:
    """Split what msgspec says into the message and the dotted path."""
    if not isinstance(error, msgspec.DecodeError):
        return f"{type(error).__name__}: {error}", ""
    found = _PLACE.match(str(error))
    place = (found and found["path"]) or ""
    return (found["message"] if found else str(error)), re.sub(r"\[(.*?)\]", r".\1", place)


def _inside(raw: Any, annotation: Any) -> Iterator[tuple[str, Any, Any]]:
    """List the parts of plain data with what each should be; `UNSET` for one that is missing."""
    kinds = [arm for arm in arms(annotation) if arm is not type(None)]
    if len(kinds) != 1:
        return
    kind, arguments = kinds[0], get_args(kinds[0])
    bare = get_origin(kind) or kind
    if isinstance(raw, dict) and _is_struct(bare):
        for field in msgspec.structs.fields(kind):
            if field.encode_name in raw or field.required:
                yield field.encode_name, raw.get(field.encode_name, msgspec.UNSET), field.type
    elif isinstance(raw, dict) and (hasattr(bare, "__dataclass_fields__") or hasattr(bare, "__total__")):
        for name, hint in hints_of(kind).items():
            if name in raw:
                yield name, raw[name], hint
    elif isinstance(raw, dict) and len(arguments) > 1:
        yield from ((str(key), part, arguments[1]) for key, part in raw.items())
    elif isinstance(raw, list) and arguments and (len(arguments) == 1 or arguments[1] is ...):
        yield from ((str(index), part, arguments[0]) for index, part in enumerate(raw))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, msgspec.StructMeta) and not kind.__struct_config__.array_like
