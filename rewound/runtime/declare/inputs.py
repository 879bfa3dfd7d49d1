"""A run's inputs: checked when it is spawned, read back when it is recovered, masked when shown."""

from collections.abc import Mapping
from typing import Any

import msgspec

from rewound.errors import InputError
from rewound.runtime.declare.checking import checked, explain
from rewound.runtime.declare.codec import decode_any
from rewound.runtime.declare.plan import Plan
from rewound.runtime.declare.redact import shown
from rewound.runtime.declare.wording import suggestion

__all__ = ["decode_inputs", "load_inputs", "redacted_inputs"]

_PACKER = msgspec.msgpack.Encoder()
_UNPACK = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode


def decode_inputs(plan: Plan, given: Any) -> tuple[Any, bytes]:
    """Check inputs by re-decoding each, and encode them for storage.

    Presence is by key: `False`, `0`, `""` and `[]` are values, `None` fails an input that does not
    allow it, and a default stands in only for an absent key.

    Args:
        plan: the reactor's plan.
        given: an instance of the reactor, or a mapping from input to value.

    Returns:
        The decoded copy that the run works on, and its msgpack: a map by input name.

    Raises:
        InputError: with every bad, missing or unknown field.
    """
    values = _values(plan, given)
    names = [field.name for field in plan.inputs]
    refused = {str(name): _unknown(str(name), names) for name in values if name not in names}
    refused |= {
        field.name: "required" for field in plan.inputs if field.required and field.name not in values
    }
    present = [field for field in plan.inputs if field.name not in refused]
    whole = {field.name: values[field.name] if field.name in values else field.default() for field in present}
    try:
        fit = checked(present, whole, plan.name)
    except InputError as error:
        refused |= error.fields
    if refused:
        raise InputError(plan.name, refused)
    packed = _PACKER.encode({name: msgspec.Raw(each.raw) for name, each in fit.items()})
    return _construct(plan, {name: each.decoded for name, each in fit.items()}), packed


def _values(plan: Plan, given: Any) -> Mapping[Any, Any]:
    if type(given) is plan.reactor:
        return {field.name: getattr(given, field.name) for field in plan.inputs}
    if isinstance(given, Mapping):
        return given
    raise InputError(
        plan.name, {"*": f"expected a {plan.reactor.__name__} or a mapping, got {type(given).__name__}"}
    )


def _unknown(name: str, names: list[str]) -> str:
    return f"unknown input.{suggestion(name, names)}"


def _construct(plan: Plan, values: dict[str, Any]) -> Any:
    try:
        return plan.reactor(**values)
    except (ValueError, TypeError) as error:  # a reactor's own __post_init__ compares its inputs
        raise InputError(plan.name, {"*": str(error)}) from error


def load_inputs(plan: Plan, raw: bytes) -> Any:
    """Read back what `decode_inputs` encoded, perhaps by an older version of the reactor.

    Inputs that are gone by now are ignored; new ones get their defaults.

    Args:
        plan: the reactor's plan.
        raw: the stored msgpack.

    Raises:
        InputError: with every field that is missing or does not fit any more.
    """
    stored = _UNPACK(raw)
    values: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for field in plan.inputs:
        if field.name not in stored:
            refused |= {field.name: "required"} if field.required else {}
            continue
        try:
            values[field.name] = field.decode(bytes(stored[field.name]))
        except Exception as error:  # noqa: BLE001  # a model's own validators may raise anything
            why = explain(decode_any(bytes(stored[field.name])), field.type, field.name)
            refused |= why or {field.name: str(error)}
    if refused:
        raise InputError(plan.name, refused)
    return _construct(plan, values)


def redacted_inputs(plan: Plan, instance: Any) -> dict[str, Any]:
    """Show a run's inputs as JSON-like data, with every secret masked, nested ones too.

    Args:
        plan: the reactor's plan.
        instance: the reactor.
    """
    return {field.name: shown(getattr(instance, field.name), field.type) for field in plan.inputs}
