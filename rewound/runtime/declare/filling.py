"""Filling the inputs of a class step or of a child: by `bind=`, else by name, else by default."""

from collections.abc import Mapping
from typing import Any

from rewound.errors import DefinitionError
from rewound.runtime.declare.binding import Element, Value
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.declared import defaults_of
from rewound.runtime.declare.members import Members
from rewound.runtime.declare.names import named, target, unknown
from rewound.runtime.declare.wording import label

__all__ = ["filled", "filled_with_element"]


def filled(members: Members, name: str, kind: Any, bind: Mapping[str, Any]) -> tuple[Arg, ...]:
    """Resolve where the inputs of a class step or child come from; those left out have defaults.

    Args:
        members: the reactor.
        name: the step.
        kind: the class whose inputs are filled.
        bind: what the user bound.

    Raises:
        DefinitionError: nothing fills an input, or a name stands for nothing.
    """
    args, left = _filled(members, name, kind, bind)
    if left:
        missing = unknown(members, left[0], f"{members.label}.{name}")
        raise DefinitionError(f"{missing} Bind it: bind={{{left[0]!r}: ...}}.")
    return args


def filled_with_element(members: Members, name: str, kind: Any, bind: Mapping[str, Any]) -> tuple[Arg, ...]:
    """Resolve where the inputs of a map's child come from.

    Unless `bind=` says where the element goes, it goes to the only required input that nothing else
    fills.

    Raises:
        DefinitionError: as for `filled`; or no input, or more than one, is left for the element.
    """
    if any(isinstance(bound, Element) for bound in bind.values()):
        return filled(members, name, kind, bind)
    args, left = _filled(members, name, kind, bind)
    subject, child = f"{members.label}.{name}", label(kind)
    if not kind.__struct_fields__:
        raise DefinitionError(f"{subject}: {child} has no input that could take the element.")
    if not left:
        some = kind.__struct_fields__[0]
        raise DefinitionError(
            f"{subject}: every input of {child} is filled, and none with the element: "
            f"say which takes it, such as bind={{{some!r}: element()}}."
        )
    if len(left) > 1:
        raise DefinitionError(
            f"{subject}: nothing fills {' and '.join(map(repr, left))} of {child}, and the element goes to "
            f"one of them: say which, such as bind={{{left[0]!r}: element()}}, and bind the rest."
        )
    return (*args, Arg(left[0], "element", name))


def _filled(
    members: Members, name: str, kind: Any, bind: Mapping[str, Any]
) -> tuple[tuple[Arg, ...], list[str]]:
    """Resolve what can be; list the required inputs that nothing fills."""
    filling = {field: _fill(members, name, field, bind.get(field)) for field in kind.__struct_fields__}
    optional = defaults_of(kind)
    left = [field for field, arg in filling.items() if arg is None and field not in optional]
    return tuple(arg for arg in filling.values() if arg is not None), left


def _fill(members: Members, name: str, field: str, bound: Any) -> Arg | None:
    subject = f"{members.label}.{name}"
    if isinstance(bound, Value):
        return Arg(field, "value", value=bound.value)
    if isinstance(bound, Element):
        return Arg(field, "element", name)
    if bound is not None:
        return Arg(field, *target(members, bound, f"{subject}: bind of {field!r}"))
    if field != name and (field in members.steps or field in members.fields):
        return Arg(field, *named(members, field, subject))
    return None
