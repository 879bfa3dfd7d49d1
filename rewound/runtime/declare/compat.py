"""Comparing versions of a reactor: may a run that an older one started go on with this one?"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.mismatch import text
from rewound.runtime.declare.plan import Plan, Shape, StepPlan

__all__ = ["compatible", "fingerprint_of", "shape_of", "steps_in"]


def shape_of(inputs: Iterable[FieldPlan], steps: Mapping[str, StepPlan]) -> Shape:
    """Write down what versions are compared by; plain tuples and text, which any storage keeps."""
    return (
        tuple((field.name, field.text, field.required) for field in inputs),
        tuple((step.name, step.needs, text(step.returns), *_child_shape(step)) for step in steps.values()),
    )


def _child_shape(step: StepPlan) -> tuple[Any, ...]:
    if step.map is not None:
        return step.kind, step.map.over, step.map.child.shape
    return () if step.child is None else (step.kind, "", step.child.shape)


def fingerprint_of(shape: Shape, version: int) -> str:
    """Hash a shape and a version; the same in every process that has the same reactor."""
    return hashlib.sha256(msgspec.msgpack.encode((shape, version))).hexdigest()[:16]


class _OldStep(Struct, array_like=True):
    """A step as a shape tells of it."""

    name: str
    needs: list[str]
    returns: str
    kind: str = "step"
    over: str = ""
    child: Any = ((), ())


class _Old(Struct, array_like=True):
    """A version as its shape tells of it."""

    inputs: list[tuple[str, str, bool]]
    steps: list[_OldStep]


def steps_in(stored_shape: Any) -> dict[str, tuple[str, ...]]:
    """List the steps of a stored shape, each with the steps that it needs."""
    return {step.name: tuple(step.needs) for step in msgspec.convert(stored_shape, _Old).steps}


def compatible(
    stored_shape: Any, plan: Plan, completed: Collection[str], begun: Collection[str] = ()
) -> list[str]:
    """Tell what keeps a run that was started with another version from going on with this one.

    Compatible are: a new step that no completed one depends on, a removed step that had not run, a new
    input with a default, a removed input, a type that admits more than before; and everything the shape
    does not hold (bodies, retries, timeouts, undos, batch sizes).

    A child that has begun is compared like the reactor itself. Where it is not known which of its steps
    have completed (those of a map's elements), all of them may have.

    Args:
        stored_shape: the shape stored with the run, perhaps decoded from msgpack (lists for tuples).
        plan: the plan at hand.
        completed: the steps that have completed; those of a composed child that has not, by path, such as
            `audit/check`.
        begun: the steps that have begun and not completed, those of composed children by path.

    Returns:
        One line for each difference that matters; nothing if the run may go on.
    """
    old = msgspec.convert(stored_shape, _Old)
    old_inputs = {name: kind for name, kind, _ in old.inputs}
    old_steps = {step.name: step for step in old.steps}
    here = [name for name in completed if "/" not in name]
    return [
        *(line for field in plan.inputs for line in _input_changes(field, old_inputs)),
        *(line for name in here for line in _step_changes(name, plan, old_steps, completed)),
        *_child_changes(plan, old_steps, completed, begun),
    ]


def _input_changes(field: FieldPlan, old: Mapping[str, str]) -> list[str]:
    if field.name not in old:
        return [f"input {field.name!r} is new and has no default"] if field.required else []
    if _narrower(old[field.name], field.text):
        return [f"input {field.name!r} was {old[field.name]}, is now {field.text}"]
    return []


def _step_changes(
    name: str, plan: Plan, old: Mapping[str, _OldStep], completed: Collection[str]
) -> list[str]:
    step = plan.steps.get(name)
    if step is None:
        return [f"step {name!r} has completed, and {plan.name} has no such step any more"]
    lines = [
        f"step {name!r} has completed, and now depends on {need!r}, which has not"
        for need in step.needs
        if need not in completed
    ]
    was, now = old[name].returns if name in old else "", text(step.returns)
    if _narrower(was, now):
        lines.append(f"step {name!r} has completed and returned {was}, now it returns {now}")
    return lines


def _child_changes(
    plan: Plan, old: Mapping[str, _OldStep], completed: Collection[str], begun: Collection[str]
) -> Iterator[str]:
    for name, was in old.items():
        step = plan.steps.get(name)
        if step is None or (name not in completed and name not in begun):
            continue
        child = step.child if step.map is None else step.map.child
        if step.kind != was.kind:
            yield f"step {name!r} has begun as a {_WORDS[was.kind]}, now it is a {_WORDS[step.kind]}"
        elif child is not None:
            yield from _within(step, child, was, completed, begun)


_WORDS = {"step": "step", "compose": "composed child", "map": "map"}


def _within(
    step: StepPlan, child: Plan, was: _OldStep, completed: Collection[str], begun: Collection[str]
) -> Iterator[str]:
    if step.map is not None and step.map.over != was.over:
        yield f"map {step.name!r} has begun over {was.over!r}, now it is over {step.map.over!r}"
    if step.map is not None or step.name in completed:
        inner, open_ones = list(steps_in(was.child)), list[str]()
    else:
        inner, open_ones = _below(step.name, completed), _below(step.name, begun)
    yield from (f"{step.name}: {line}" for line in compatible(was.child, child, inner, open_ones))


def _below(name: str, paths: Iterable[str]) -> list[str]:
    return [path.removeprefix(f"{name}/") for path in paths if path.startswith(f"{name}/")]


def _narrower(old: str, new: str) -> bool:
    """Tell whether some value of the old type may not be of the new one."""
    return new != "Any" and not set(old.split(" | ")) <= set(new.split(" | "))
