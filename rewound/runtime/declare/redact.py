"""Masking secrets: inputs as they may be shown."""

from typing import Annotated, Any, get_args, get_origin

import msgspec

from rewound.runtime.declare.losses import parts
from rewound.runtime.declare.markers import Redact
from rewound.runtime.declare.mismatch import arms

__all__ = ["MASK", "is_secret", "masked", "shown"]

MASK = "[redacted]"


def is_secret(annotation: Any) -> bool:
    """Tell whether a type is marked `Redact`, itself or a member of its union."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return any(mark is Redact or isinstance(mark, Redact) for mark in marks) or is_secret(inner)
    if hasattr(annotation, "__value__"):  # `type Password = Annotated[str, Redact]`
        return is_secret(annotation.__value__)
    return len(arms(annotation)) > 1 and any(is_secret(arm) for arm in get_args(annotation))


def masked(value: Any, annotation: Any) -> Any:
    """Mask every secret in a value, however deep.

    Returns:
        The value itself if it holds no secret, else plain dicts and lists in its place.
    """
    if is_secret(annotation):
        return MASK
    inside = [(part, masked(part.value, part.annotation)) for part in parts(value, annotation)]
    if all(shown is part.value for part, shown in inside):
        return value
    if isinstance(value, dict):
        keys, values = inside[::2], inside[1::2]
        return {key: inner for (_, key), (_, inner) in zip(keys, values, strict=True)}
    if not isinstance(value, list | set | frozenset) and inside[0][0].path.startswith("."):
        return {part.path[1:]: shown for part, shown in inside}
    return [shown for _, shown in inside]


def shown(value: Any, annotation: Any) -> Any:
    """Turn a value into JSON-like data with its secrets masked; what has no such form is its `repr`."""
    return msgspec.to_builtins(masked(value, annotation), str_keys=True, enc_hook=_plain)


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return repr(value) if dump is None else dump(by_alias=True, round_trip=True)
