"""The inputs that children run on: a composed child's, and those of each element of a map."""

from collections.abc import Callable
from typing import Any

from rewound.errors import InputError
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.checking import Checked, check_value, collect, fit
from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.inputs import construct, decode_inputs, default_of
from rewound.runtime.declare.plan import MapPlan, Plan, StepPlan
from rewound.runtime.declare.prepare import Sources, taken

__all__ = ["ElementInputs", "child_inputs", "map_of"]

_IMMUTABLE = (bool, int, float, str, bytes, type(None))


def map_of(step: StepPlan) -> MapPlan:
    """Get what a map iterates, and how.

    Raises:
        LookupError: the step is no map.
    """
    if step.map is None:
        raise LookupError(f"{step.label} is no map")
    return step.map


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


class ElementInputs:
    """Makes the inputs of a map's elements: what they have in common is resolved and checked once.

    Args:
        plan: the plan of the reactor that the map belongs to.
        step: the map.
        instance: that reactor with its inputs.
        result_of: gives the result of a step of it by name; raises `KeyError` if there is none, or
            `PayloadError` if it cannot be read.

    Raises:
        InputError: an input that all elements share cannot be resolved, or does not fit. No element has
            started (rule S2).

    Example:
        >>> inputs = ElementInputs(plan, plan.steps["charges"], billing, result_of)
        >>> inputs.make(Order(id=1))
        ChargeOrder(order=Order(id=1), rate=3)
    """

    def __init__(self, plan: Plan, step: StepPlan, instance: Any, result_of: Callable[[str], Any]) -> None:
        mapped = map_of(step)
        self._subject = f"{plan.name}.{step.name}"
        self._child = mapped.child
        taking = {arg.name for arg in mapped.bind if arg.source == "element"}
        self._taking = [field for field in self._child.inputs if field.name in taking]
        shared = [field for field in self._child.inputs if field.name not in taking]
        common = tuple(arg for arg in mapped.bind if arg.source != "element")
        checked = self._checked(shared, common, Sources(instance, result_of))
        # what an element might change is decoded for each of them
        self._kept = {name: each.decoded for name, each in checked.items() if _is_immutable(each.decoded)}
        self._fresh = [(field, checked[field.name].raw) for field in shared if field.name not in self._kept]

    def make(self, item: Any) -> Any:
        """Make the inputs of one element.

        Args:
            item: what it runs on.

        Returns:
            The child's reactor, with copies that no other element shares.

        Raises:
            InputError: the item does not fit the child. Nothing of this element has started (rule S2).
        """
        try:
            own = {field.name: fit(field, item) for field in self._taking}
            fresh = {field.name: field.decode(raw) for field, raw in self._fresh}
            return construct(self._child, {**self._kept, **fresh, **own})
        except InputError as error:
            raise InputError(self._subject, error.fields) from error

    def _checked(
        self, fields: list[FieldPlan], common: tuple[Arg, ...], sources: Sources
    ) -> dict[str, Checked]:
        values = taken(common, sources, self._subject)

        def check(field: FieldPlan) -> Checked:
            return check_value(field, values[field.name] if field.name in values else default_of(field))

        return collect(fields, check, self._subject)


def _is_immutable(value: Any) -> bool:
    return value.__class__ in _IMMUTABLE
