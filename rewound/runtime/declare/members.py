"""Collecting a reactor's inputs, steps, sources and handlers from its class and bases."""

from typing import Any

from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.children import MapDef
from rewound.runtime.declare.declared import defaults_of
from rewound.runtime.declare.handlers import HandlerDef, HandlerKind
from rewound.runtime.declare.member import Member
from rewound.runtime.declare.sources import SourceBase
from rewound.runtime.declare.steps import BodyDef, StepBase
from rewound.runtime.declare.wording import label

__all__ = ["RESERVED", "Members", "members_of"]

RESERVED = frozenset({"returns", "self", "ctx", "error"})


class Members(Struct, frozen=True):
    """What a reactor is made of.

    Args:
        cls: the class.
        label: its name in messages.
        fields: its inputs, base classes first.
        steps: its steps by name, base classes first; an overridden step keeps its place.
        sources: the generators that feed its maps.
        handlers: its undos and compensates by step and kind.
    """

    cls: Any
    label: str
    fields: tuple[str, ...]
    steps: dict[str, StepBase[..., Any]]
    sources: dict[str, SourceBase]
    handlers: dict[tuple[str, HandlerKind], HandlerDef[..., Any]]


def members_of(cls: Any) -> Members:
    """Collect what a reactor is made of, plain mixins included.

    Raises:
        DefinitionError: a name is reserved, means two things, or a step or handler got lost.
    """
    steps: dict[str, StepBase[..., Any]] = {}
    sources: dict[str, SourceBase] = {}
    handlers: dict[tuple[str, HandlerKind], HandlerDef[..., Any]] = {}
    for base in reversed(cls.__mro__):
        own: dict[str, Any] = {**base.__dict__}
        _not_hidden(cls, own, steps, handlers)
        _no_hidden_source(cls, own, sources)
        sources |= {name: value for name, value in own.items() if _makes(SourceBase, name, value)}
        steps |= {name: value for name, value in own.items() if _makes(StepBase, name, value)}
        handlers |= _handlers(cls, base)
    members = Members(cls, label(cls), cls.__struct_fields__, steps, sources, handlers)
    _check_names(members)
    _check_targets(members)
    _check_collectors(members)
    return members


def _makes(kind: type[Member], name: str, value: object) -> bool:
    # `returns = charge` names a step, it does not make one
    return isinstance(value, kind) and not (name == "returns" and value.name != "returns")


def _handlers(cls: type, base: type) -> dict[tuple[str, HandlerKind], HandlerDef[..., Any]]:
    found: dict[tuple[str, HandlerKind], HandlerDef[..., Any]] = {}
    for name, value in vars(base).items():
        if not isinstance(value, HandlerDef):
            continue
        key: tuple[str, HandlerKind] = (value.target.name, value.kind)
        if key in found:
            both = f"{found[key].name}, {name}"
            raise DefinitionError(f"{label(cls)}.{value.target.name} has two {value.kind} handlers: {both}.")
        found[key] = value
    return found


def _not_hidden(cls: type, own: Any, steps: dict[str, Any], handlers: dict[Any, Any]) -> None:
    named = {handler.name: handler for handler in handlers.values()}
    for name, value in own.items():
        if name in steps and not isinstance(value, StepBase):
            raise DefinitionError(f"{label(cls)}.{name} hides the step {name!r}: add @step to override it.")
        if name in named and not isinstance(value, HandlerDef):
            target, kind = named[name].target, named[name].kind
            raise DefinitionError(
                f"{label(cls)}.{name} hides the {kind} of {target.name!r}: "
                f"add @{label(target.owner)}.{target.name}.{kind} to override it."
            )


def _no_hidden_source(cls: type, own: Any, sources: dict[str, Any]) -> None:
    for name, value in own.items():
        if name in sources and not isinstance(value, SourceBase):
            raise DefinitionError(
                f"{label(cls)}.{name} hides the source {name!r}: add @source to override it."
            )


def _check_names(members: Members) -> None:
    for name in (*members.fields, *members.steps, *members.sources):
        if name in RESERVED:
            raise DefinitionError(f"{members.label}: {name!r} is reserved; choose another name.")
    for name, default in defaults_of(members.cls).items():
        # msgspec has taken it out of the class body
        if isinstance(default, Member):
            raise DefinitionError(f"{name!r} is both an input and a {_word(default)} of {members.label}.")
    for name, member in (*members.steps.items(), *members.sources.items()):
        if name in members.fields:
            raise DefinitionError(f"{name!r} is both an input and a {_word(member)} of {members.label}.")
        if member.name != name:
            raise DefinitionError(
                f"{members.label}: {name!r} is {member.name!r} again; write a {_word(member)} of its own."
            )


def _word(member: Member) -> str:
    return "source" if isinstance(member, SourceBase) else "step"


def _check_targets(members: Members) -> None:
    for (target, kind), handler in members.handlers.items():
        where = f"{members.label}.{handler.name} is the {kind} of {target!r}"
        step = members.steps.get(target)
        if step is None:
            raise DefinitionError(f"{where}, which {members.label} does not have.")
        if kind == "undo_all" and not isinstance(step, MapDef):
            raise DefinitionError(f"{where}, which is no map here.")
        if kind != "undo_all" and not isinstance(step, BodyDef):
            raise DefinitionError(f"{where}, which runs a child here: the child's steps have their own.")


def _check_collectors(members: Members) -> None:
    found: dict[str, str] = {}
    for name, step in members.steps.items():
        if step.options.collects is None:
            continue
        target = step.options.collects.name
        if not isinstance(members.steps.get(target), MapDef):
            where = f"{members.label}.{name} collects {target!r}"
            raise DefinitionError(f"{where}, which is no map of {members.label}.")
        if target in found:
            both = f"{found[target]}, {name}"
            raise DefinitionError(f"{members.label}.{target} has two collectors: {both}.")
        found[target] = name
