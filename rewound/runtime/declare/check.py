"""What `rewound check` looks at: the definitions of a module, and steps that cannot be taken back."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from rewound.errors import DefinitionError
from rewound.runtime.declare.build import plan_of
from rewound.runtime.declare.declared import declaration
from rewound.runtime.declare.graph import ancestors
from rewound.runtime.declare.plan import Plan, StepPlan
from rewound.runtime.declare.reactor import ReactorMeta

__all__ = ["check_module", "lint"]


def check_module(module: ModuleType) -> list[DefinitionError]:
    """Plan every reactor that a module defines or imports; abstract and generic ones aside.

    Args:
        module: an imported module.

    Returns:
        What is wrong, one error for each reactor.
    """
    found: list[DefinitionError] = []
    for value in dict.fromkeys(each for each in vars(module).values() if isinstance(each, ReactorMeta)):
        cls: Any = value
        if not declaration(cls).reactor.wired or cls.__parameters__:
            continue
        try:
            plan_of(cls)
        except DefinitionError as error:
            found.append(error)
    return found


def lint(plan: Plan) -> list[str]:
    """List steps that look effectful, have no undo, and may have to be taken back; also those of children.

    Effectful is a guess: a step that is `async`, takes `ctx` or retries talks to something outside; a
    plain function that does neither probably computes, and so does a collector, which is `async` only to
    read results. A step may have to be taken back when another
    one can still fail after it has completed: in its own reactor, in one that runs it as a child, or in
    another element of the same map. An undo with an empty body says that there is nothing to take back,
    and silences the remark.

    Args:
        plan: the reactor's plan.

    Returns:
        One line for each such step.
    """
    return list(dict.fromkeys(_remarks(plan, [])))


def _remarks(plan: Plan, outside: list[str]) -> Iterator[str]:
    """List the remarks on a plan; `outside` tells what may fail after the plan has completed."""
    for step in plan.steps.values():
        later = [*_may_fail_later(plan, step.name), *outside]
        if step.map is not None:
            # an undo_all takes completed elements back, so only what is inside an element counts
            others = [f"another element of {step.label}"] if step.map.atomic else []
            yield from _remarks(step.map.child, [] if step.map.undo_all else [*others, *later])
        elif step.child is not None:
            yield from _remarks(step.child, later)
        elif later and step.undo is None and _effectful(step):
            yield (
                f"{step.label} has no undo, and {', '.join(later)} may fail after it: add @{step.name}.undo "
                "(with an empty body, if there is nothing to take back)."
            )


def _effectful(step: StepPlan) -> bool:
    waits = step.call.is_async and step.collects is None
    return waits or step.retry.attempts > 1 or any(arg.source == "ctx" for arg in step.call.args)


def _may_fail_later(plan: Plan, step: str) -> list[str]:
    needs = {name: each.needs for name, each in plan.steps.items()}
    before = {step, *ancestors(needs, step)}
    return [name for name in plan.steps if name not in before]
