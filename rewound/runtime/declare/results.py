"""A step's result on its way to storage and back."""

from typing import Any, cast

from msgspec import Struct

from rewound.errors import EncodeError, PayloadTooLarge
from rewound.runtime.declare.codec import OutputError, encode
from rewound.runtime.declare.losses import lost
from rewound.runtime.declare.markers import Skipped
from rewound.runtime.declare.mismatch import text
from rewound.runtime.declare.plan import StepPlan

__all__ = ["decode_result", "encode_result"]


def encode_result(step: StepPlan, value: Any, *, max_payload: int) -> tuple[bytes, bool]:
    """Encode what a step returned, and check that its readers will get what it says.

    Args:
        step: the step's plan.
        value: what the body returned.
        max_payload: the largest result allowed, in bytes.

    Returns:
        The msgpack, and whether the step said `Skipped`.

    Raises:
        EncodeError: a part cannot be stored, or would come back as something else.
        PayloadTooLarge: it is larger than `max_payload`.
        OutputError: it is not what the return annotation says.
    """
    skipped = isinstance(value, Skipped)
    if isinstance(value, Skipped):
        value = cast("Any", value).value
    raw = encode(value, f"{step.label}: result")
    if len(raw) > max_payload:
        raise PayloadTooLarge(
            f"{step.label}: the result takes {len(raw)} bytes, more than max_payload={max_payload}; "
            "store it elsewhere and return a reference."
        )
    try:
        decoded = step.decode(raw)
    except Exception as error:
        raise OutputError(
            f"{step.label} says -> {text(step.returns)}, but returned otherwise: {error}"
        ) from error
    if step.loose:
        _refuse_loss(step, value)
    if isinstance(value, Struct) and type(decoded) is not type(value):
        _refuse_other(step, value, decoded)
    return raw, skipped


def _refuse_loss(step: StepPlan, value: Any) -> None:
    found = lost(value, step.returns)
    if found is not None:
        kind = text(type(found.value))
        why = f"would come back as something else, because -> {text(step.returns)} does not say so"
        raise EncodeError(f"{step.label}: result{found.path} is a {kind} and {why}; annotate it as {kind}.")


def _refuse_other(step: StepPlan, value: Any, decoded: Any) -> None:
    given, read = text(type(value)), text(type(decoded))
    says = f"{step.label} says -> {text(step.returns)}"
    raise OutputError(f"{says}, but returned a {given}, which would come back as a {read}.")


def decode_result(step: StepPlan, raw: bytes) -> Any:
    """Read a stored result with the step's return annotation.

    Args:
        step: the step's plan.
        raw: what `encode_result` gave.

    Raises:
        OutputError: it does not fit the annotation (any more).
    """
    try:
        return step.decode(raw)
    except Exception as error:
        raise OutputError(
            f"{step.label}: the stored result does not fit -> {text(step.returns)}: {error}"
        ) from error
