"""Resolving one name that a reactor uses: a step, an input, or (for a map) a source."""

import inspect
from typing import Any, Literal

from rewound.errors import DefinitionError
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.children import MapDef, Over
from rewound.runtime.declare.handlers import HandlerDef
from rewound.runtime.declare.members import Members
from rewound.runtime.declare.sources import SourceBase
from rewound.runtime.declare.steps import StepBase
from rewound.runtime.declare.wording import suggestion

__all__ = ["named", "over", "read", "target", "unknown"]

Named = tuple[Literal["step", "input"], str]
Iterated = tuple[Literal["step", "input", "map", "generator"], str]


def read(members: Members, name: str, subject: str) -> Arg:
    """Resolve a parameter.

    Raises:
        DefinitionError: it stands for nothing, or for what cannot be read.
    """
    return Arg(name, "ctx") if name == "ctx" else Arg(name, *named(members, name, subject))


def named(members: Members, name: str, subject: str) -> Named:
    """Tell whether a name is a step or an input.

    Raises:
        DefinitionError: it is neither.
    """
    if name in members.steps:
        return "step", name
    if name in members.fields:
        return "input", name
    raise DefinitionError(unknown(members, name, subject))


def target(members: Members, given: StepBase[..., Any] | str, subject: str) -> Named:
    """Resolve what was given as an object or as a name.

    Raises:
        DefinitionError: the reactor has no such step (or input, if it is a name).
    """
    if isinstance(given, str):
        return named(members, given, subject)
    if given.name not in members.steps:
        raise DefinitionError(f"{subject} names a step that {members.label} does not have.")
    return "step", given.name


def over(members: Members, given: Over, subject: str) -> Iterated:
    """Resolve what a map iterates.

    Raises:
        DefinitionError: the reactor has no such source, step, map or input.
    """
    if given in members.sources:
        return "generator", str(given)
    if isinstance(given, SourceBase):
        if given.name not in members.sources:
            raise DefinitionError(f"{subject} names a source that {members.label} does not have.")
        return "generator", given.name
    if isinstance(given, str) and given not in (*members.steps, *members.fields):
        known = (*members.sources, *members.steps, *members.fields)
        raise DefinitionError(f"{subject}: no source, step or input {given!r}.{suggestion(given, known)}")
    kind, name = target(members, given, subject)
    return ("map", name) if isinstance(members.steps.get(name), MapDef) else (kind, name)


def unknown(members: Members, name: str, subject: str) -> str:
    """Say why a name cannot be read."""
    found: Any = inspect.getattr_static(members.cls, name, None)
    if name == "error":
        return f"{subject} reads 'error', which only a compensate is given."
    if isinstance(found, HandlerDef):
        return f"{subject} reads {name!r}, which is the {found.kind} of {found.target.name!r}, not a step."
    if isinstance(found, SourceBase):
        return f"{subject} reads {name!r}, which is a source: only a map reads it, with over={name}."
    if inspect.isfunction(found):
        return f"{subject} reads {name!r}, which is a method, not a step: add @step."
    if found is not None:
        return f"{subject} reads {name!r}, which is a class attribute, not an input: annotate it."
    known = (*members.steps, *members.fields, "ctx")
    return f"{subject}: no step or input {name!r}.{suggestion(name, known)}"
