"""Wiring by name: what each parameter reads, what each step therefore needs. No annotation is read here."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.calls import NO_BODY, Arg, Call, Made
from rewound.runtime.declare.children import ChildDef, MapDef
from rewound.runtime.declare.classes import UseDef
from rewound.runtime.declare.filling import filled, filled_with_element
from rewound.runtime.declare.graph import ancestors, check_cycles
from rewound.runtime.declare.handling import handler
from rewound.runtime.declare.members import Members
from rewound.runtime.declare.names import over, read, target
from rewound.runtime.declare.plan import HandlerPlan
from rewound.runtime.declare.signature import is_async, parameters
from rewound.runtime.declare.sources import SourceBase
from rewound.runtime.declare.steps import BodyDef, StepBase

__all__ = ["Iterates", "Wired", "wire"]


class Iterates(Struct, frozen=True):
    """What a map iterates.

    Args:
        source: what kind of thing it is.
        key: its name.
        definition: the generator as it stands in the class, if it is one.
        call: how to run it, if it is one.
    """

    source: Literal["step", "input", "map", "generator"]
    key: str
    definition: SourceBase | None = None
    call: Call = NO_BODY

    @property
    def reads(self) -> tuple[Arg, ...]:
        """Everything that has to be there before iterating can begin."""
        if self.source in ("step", "map"):
            return (Arg("over", "step", self.key),)
        return self.call.args


class Wired(Struct, frozen=True):
    """A step with every name resolved.

    Args:
        definition: as it stands in the class.
        needs: the steps it waits for, in definition order.
        call: its body.
        undo: its undo, if any.
        compensate: its compensate, if any.
        bind: how the inputs of its child are made, if it has one.
        over: what it iterates, if it is a map.
        undo_all: what takes all its elements back, if it is a map that says so.
    """

    definition: StepBase[..., Any]
    needs: tuple[str, ...]
    call: Call
    undo: HandlerPlan | None
    compensate: HandlerPlan | None
    bind: tuple[Arg, ...] = ()
    over: Iterates | None = None
    undo_all: HandlerPlan | None = None


def wire(members: Members) -> dict[str, Wired]:
    """Resolve every name that steps and handlers use.

    Raises:
        DefinitionError: a name stands for nothing, or may not be used there; or steps need each other.
    """
    calls = {name: _forward(members, name) for name in members.steps}
    binds = {name: _bind(members, name) for name in members.steps}
    generators = {name: _generator(members, name) for name in members.sources}
    overs = {name: _over(members, name, generators) for name in members.steps}
    needs = {
        name: _needs(members, name, (*_reads(calls[name]), *binds[name], *(each.reads if each else ())))
        for name, each in overs.items()
    }
    check_cycles(needs, members.label)
    wired: dict[str, Wired] = {}
    for name, definition in members.steps.items():
        seen = frozenset(ancestors(needs, name))
        wired[name] = Wired(
            definition,
            needs[name],
            calls[name],
            undo=handler(members, name, "undo", calls[name], seen),
            compensate=handler(members, name, "compensate", calls[name], seen),
            bind=binds[name],
            over=overs[name],
            undo_all=handler(members, name, "undo_all", calls[name], seen),
        )
    return wired


def _bind(members: Members, name: str) -> tuple[Arg, ...]:
    definition = members.steps[name]
    if isinstance(definition, MapDef):
        return filled_with_element(members, name, definition.child, definition.bind)
    if isinstance(definition, ChildDef):
        return filled(members, name, definition.child, definition.bind)
    return ()


def _generator(members: Members, name: str) -> Call:
    fn, subject = members.sources[name].fn, f"{members.label}.{name}"
    args = tuple(
        Arg(each, "cursor") if each == "cursor" else read(members, each, subject)
        for each in parameters(fn, subject)
    )
    return Call(fn, is_async=True, args=args)


def _over(members: Members, name: str, generators: dict[str, Call]) -> Iterates | None:
    definition = members.steps[name]
    if not isinstance(definition, MapDef):
        return None
    kind, key = over(members, definition.how.over, f"{members.label}.{name}: over=")
    if kind == "generator":
        return Iterates(kind, key, members.sources[key], generators[key])
    return Iterates(kind, key)


def _forward(members: Members, name: str) -> Call:
    definition, subject = members.steps[name], f"{members.label}.{name}"
    if not isinstance(definition, BodyDef):
        return NO_BODY
    if isinstance(definition, UseDef):
        ctx = tuple(Arg(each, "ctx") for each in parameters(definition.fn, subject))
        made = Made(definition.kind, filled(members, name, definition.kind, definition.bind), validates=True)
        return Call(definition.fn, is_async(definition.fn), ctx, made)
    args = tuple(read(members, each, subject) for each in parameters(definition.fn, subject))
    if any(arg.key == name for arg in args):
        raise DefinitionError(f"{subject} reads its own result, which is not there before it ran.")
    return Call(definition.fn, is_async(definition.fn), args)


def _reads(call: Call) -> tuple[Arg, ...]:
    return call.args if call.made is None else (*call.args, *call.made.args)


def _needs(members: Members, name: str, reads: Iterable[Arg]) -> tuple[str, ...]:
    wanted = {arg.key for arg in reads if arg.source == "step"}
    options = members.steps[name].options
    if options.collects is not None:
        wanted.add(options.collects.name)
    for each in options.after:
        subject = f"{members.label}.{name}: after="
        kind, step = target(members, each, subject)
        if kind == "input":
            raise DefinitionError(f"{subject} names {step!r}, which is an input, not a step.")
        wanted.add(step)
    return tuple(step for step in members.steps if step in wanted)
