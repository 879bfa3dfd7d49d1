"""The inputs that children run on."""

from collections.abc import Callable
from typing import Any

from rewound.errors import InputError
from rewound.runtime.declare.inputs import decode_inputs
from rewound.runtime.declare.plan import Plan, StepPlan
from rewound.runtime.declare.prepare import Sources, taken

__all__ = ["child_inputs"]


def child_inputs(
    plan: Plan, step: StepPlan, instance: Any, result_of: Callable[[str], Any]
) -> tuple[Any, bytes]:
    """Make the inputs of a composed child.

    Args:
        plan: the plan of the parent.
        step: the step that composes the child.
        instance: the parent with its inputs.
        result_of: gives the result of a step of the parent by name; raises `KeyError` if there is none,
            or `PayloadError` if it cannot be read.

    Returns:
        The child's reactor, checked as when it is spawned, and its msgpack.

    Raises:
        InputError: an input cannot be resolved, or does not fit. Nothing of the child has started, so
            nothing of it is compensated (rule S2).
    """
    if step.child is None:
        raise LookupError(f"{step.label} composes nothing")
    subject = f"{plan.name}.{step.name}"
    values = taken(step.bind, Sources(instance, result_of), subject)
    try:
        return decode_inputs(step.child, values)
    except InputError as error:
        raise InputError(subject, error.fields) from error
