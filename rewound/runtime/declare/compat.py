"""Comparing versions of a reactor: may a run that an older one started go on with this one?"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.mismatch import text
from rewound.runtime.declare.plan import Plan, Shape, StepPlan

__all__ = ["compatible", "fingerprint_of", "shape_of"]


def shape_of(inputs: Iterable[FieldPlan], steps: Mapping[str, StepPlan]) -> Shape:
    """Write down what versions are compared by; plain tuples and text, which any storage keeps."""
    return (
        tuple((field.name, field.text, field.required) for field in inputs),
        tuple((step.name, step.needs, text(step.returns)) for step in steps.values()),
    )


def fingerprint_of(shape: Shape, version: int) -> str:
    """Hash a shape and a version; the same in every process that has the same reactor."""
    return hashlib.sha256(msgspec.msgpack.encode((shape, version))).hexdigest()[:16]


def compatible(stored_shape: Any, plan: Plan, completed: Collection[str]) -> list[str]:
    """Tell what keeps a run that was started with another version from going on with this one.

    Compatible are: a new step that no completed one depends on, a removed step that had not run, a new
    input with a default, a removed input, a type that admits more than before; and everything the shape
    does not hold (bodies, retries, timeouts, undos).

    Args:
        stored_shape: the shape stored with the run, perhaps decoded from msgpack (lists for tuples).
        plan: the plan at hand.
        completed: the steps that have completed.

    Returns:
        One line for each difference that matters; nothing if the run may go on.
    """
    inputs, steps = msgspec.convert(stored_shape, Shape)
    old_inputs = {name: kind for name, kind, _ in inputs}
    old_results = {name: kind for name, _, kind in steps}
    return [
        *(line for field in plan.inputs for line in _input_changes(field, old_inputs)),
        *(line for step in completed for line in _step_changes(step, plan, old_results, completed)),
    ]


def _input_changes(field: FieldPlan, old: Mapping[str, str]) -> list[str]:
    if field.name not in old:
        return [f"input {field.name!r} is new and has no default"] if field.required else []
    if _narrower(old[field.name], field.text):
        return [f"input {field.name!r} was {old[field.name]}, is now {field.text}"]
    return []


def _step_changes(name: str, plan: Plan, old: Mapping[str, str], completed: Collection[str]) -> list[str]:
    step = plan.steps.get(name)
    if step is None:
        return [f"step {name!r} has completed, and {plan.name} has no such step any more"]
    lines = [
        f"step {name!r} has completed, and now depends on {need!r}, which has not"
        for need in step.needs
        if need not in completed
    ]
    was, now = old.get(name, ""), text(step.returns)
    if _narrower(was, now):
        lines.append(f"step {name!r} has completed and returned {was}, now it returns {now}")
    return lines


def _narrower(old: str, new: str) -> bool:
    """Tell whether some value of the old type may not be of the new one."""
    return new != "Any" and not set(old.split(" | ")) <= set(new.split(" | "))
