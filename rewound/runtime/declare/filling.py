"""Filling the inputs of a class step or of a child: by `bind=`, else by name, else by default."""

from collections.abc import Mapping
from typing import Any

from rewound.errors import DefinitionError
from rewound.runtime.declare.binding import Value
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.declared import defaults_of
from rewound.runtime.declare.members import Members
from rewound.runtime.declare.names import named, target, unknown

__all__ = ["filled"]


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
    subject = f"{members.label}.{name}"
    optional = defaults_of(kind)
    args: list[Arg] = []
    for field in kind.__struct_fields__:
        arg = _fill(members, field, bind.get(field), subject)
        if arg is not None:
            args.append(arg)
        elif field not in optional:
            raise DefinitionError(f"{unknown(members, field, subject)} Bind it: bind={{{field!r}: ...}}.")
    return tuple(args)


def _fill(members: Members, field: str, bound: Any, subject: str) -> Arg | None:
    own = subject.rpartition(".")[2]
    if isinstance(bound, Value):
        return Arg(field, "value", value=bound.value)
    if bound is not None:
        return Arg(field, *target(members, bound, f"{subject}: bind of {field!r}"))
    if field != own and (field in members.steps or field in members.fields):
        return Arg(field, *named(members, field, subject))
    return None
