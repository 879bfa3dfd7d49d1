"""Which reactors exist in this process. Weak: a reactor that a test defined goes when the test ends."""

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

from rewound.errors import DefinitionError
from rewound.runtime.declare.build import plan_of
from rewound.runtime.declare.plan import Plan
from rewound.runtime.declare.wording import label

__all__ = ["plans_for", "reactors_defined", "remember"]

_DEFINED: WeakValueDictionary[str, type[Any]] = WeakValueDictionary()


def remember(name: str, cls: type[Any]) -> None:
    """Note a reactor under its stored name; a newer one of that name takes its place."""
    _DEFINED[name] = cls


def reactors_defined() -> list[type[Any]]:
    """List every reactor defined so far that can be spawned, the newest of each stored name."""
    return list(_DEFINED.values())


def plans_for(reactors: Iterable[type[Any]]) -> dict[str, Plan]:
    """Plan reactors, by stored name, and let the reactors that they run as children come along.

    A child whose stored name is another reactor's (two that are defined in the bodies of their parents
    may well be called alike) does not: it runs within its parents, but cannot be spawned by itself.

    Args:
        reactors: the classes; naming one twice is no fault.

    Raises:
        DefinitionError: two of them have one stored name, or one cannot be planned.
    """
    plans: dict[str, Plan] = {}
    for cls in reactors:
        plan = plan_of(cls)
        known = plans.setdefault(plan.name, plan)
        if known.reactor is not cls:
            both = " and ".join(f"{each.__module__}.{label(each)}" for each in (known.reactor, cls))
            raise DefinitionError(f"{both} have one stored name, {plan.name!r}: give one of them name=...")
    for plan in list(plans.values()):
        for child in _children(plan):
            plans.setdefault(child.name, child)
    return plans


def _children(plan: Plan) -> Iterator[Plan]:
    for step in plan.steps.values():
        child = step.child if step.map is None else step.map.child
        if child is not None:
            yield child
            yield from _children(child)
