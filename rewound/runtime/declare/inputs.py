"""A run's inputs: checked when it is spawned, read back when it is recovered, masked when shown."""

from collections.abc import Mapping
from typing import Any

import msgspec

from rewound.errors import InputError
from rewound.runtime.declare.checking import Checked, check_value, collect, decode_field
from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.plan import Plan
from rewound.runtime.declare.redact import shown
from rewound.runtime.declare.wording import suggestion

__all__ = ["construct", "decode_inputs", "default_of", "load_inputs", "redacted_inputs"]

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
    unknown = {
        str(name): f"unknown input.{suggestion(str(name), names)}" for name in values if name not in names
    }

    def check(field: FieldPlan) -> Checked:
        return check_value(field, values[field.name] if field.name in values else default_of(field))

    fit = collect(plan.inputs, check, plan.name, unknown)
    packed = _PACKER.encode({name: msgspec.Raw(each.raw) for name, each in fit.items()})
    return construct(plan, {name: each.decoded for name, each in fit.items()}), packed


def _values(plan: Plan, given: Any) -> Mapping[Any, Any]:
    if type(given) is plan.reactor:
        return {field.name: getattr(given, field.name) for field in plan.inputs}
    if issubclass(given.__class__, Mapping):
        values: Mapping[Any, Any] = given
        return values
    raise InputError(
        plan.name, {"*": f"expected a {plan.reactor.__name__} or a mapping, got {type(given).__name__}"}
    )


def default_of(field: FieldPlan) -> Any:
    """Give what an absent input gets.

    Raises:
        InputError: it has no default.
    """
    if field.required:
        raise InputError(field.name, {field.name: "required"})
    return field.default()


def construct(plan: Plan, values: dict[str, Any]) -> Any:
    """Make a reactor of inputs that were checked one by one.

    Raises:
        InputError: they do not fit together, says the reactor.
    """
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

    def read(field: FieldPlan) -> Any:
        return decode_field(field, bytes(stored[field.name])) if field.name in stored else default_of(field)

    return construct(plan, collect(plan.inputs, read, plan.name))


def redacted_inputs(plan: Plan, instance: Any) -> dict[str, Any]:
    """Show a run's inputs as JSON-like data, with every secret masked, nested ones too.

    Args:
        plan: the reactor's plan.
        instance: the reactor.
    """
    return {field.name: shown(getattr(instance, field.name), field.type) for field in plan.inputs}
