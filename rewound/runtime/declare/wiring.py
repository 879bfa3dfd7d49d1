"""Wiring by name: what each parameter reads, what each step therefore needs. No annotation is read here."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.calls import NO_BODY, Arg, Call, Made
from rewound.runtime.declare.children import ChildDef
from rewound.runtime.declare.classes import UseDef, method_of
from rewound.runtime.declare.filling import filled
from rewound.runtime.declare.graph import ancestors, check_cycles
from rewound.runtime.declare.handlers import HANDLER_TIMEOUT, HandlerKind
from rewound.runtime.declare.members import Members
from rewound.runtime.declare.names import read, target
from rewound.runtime.declare.plan import HandlerPlan
from rewound.runtime.declare.retry import ONCE
from rewound.runtime.declare.signature import is_async, parameters
from rewound.runtime.declare.steps import BodyDef, StepBase

__all__ = ["Wired", "wire"]


class Wired(Struct, frozen=True):
    """A step with every name resolved.

    Args:
        definition: as it stands in the class.
        needs: the steps it waits for, in definition order.
        call: its body.
        undo: its undo, if any.
        compensate: its compensate, if any.
        bind: how the inputs of its child are made, if it has one.
    """

    definition: StepBase[..., Any]
    needs: tuple[str, ...]
    call: Call
    undo: HandlerPlan | None
    compensate: HandlerPlan | None
    bind: tuple[Arg, ...] = ()


def wire(members: Members) -> dict[str, Wired]:
    """Resolve every name that steps and handlers use.

    Raises:
        DefinitionError: a name stands for nothing, or may not be used there; or steps need each other.
    """
    calls = {name: _forward(members, name) for name in members.steps}
    binds = {name: _bind(members, name) for name in members.steps}
    needs = {name: _needs(members, name, (*_reads(calls[name]), *binds[name])) for name in members.steps}
    check_cycles(needs, members.label)
    wired: dict[str, Wired] = {}
    for name, definition in members.steps.items():
        seen = frozenset(ancestors(needs, name))
        undo = _handler(members, name, "undo", calls[name], seen)
        compensate = _handler(members, name, "compensate", calls[name], seen)
        wired[name] = Wired(definition, needs[name], calls[name], undo, compensate, binds[name])
    return wired


def _bind(members: Members, name: str) -> tuple[Arg, ...]:
    definition = members.steps[name]
    if not isinstance(definition, ChildDef):
        return ()
    return filled(members, name, definition.child, definition.bind)


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
    for each in members.steps[name].options.after:
        subject = f"{members.label}.{name}: after="
        kind, step = target(members, each, subject)
        if kind == "input":
            raise DefinitionError(f"{subject} names {step!r}, which is an input, not a step.")
        wanted.add(step)
    return tuple(step for step in members.steps if step in wanted)


def _handler(
    members: Members, name: str, kind: HandlerKind, forward: Call, seen: frozenset[str]
) -> HandlerPlan | None:
    handler = members.handlers.get((name, kind))
    if handler is not None:
        subject = f"{members.label}.{handler.name}"
        args = tuple(
            _seen(members, each, (name, kind, subject), seen) for each in parameters(handler.fn, subject)
        )
        return HandlerPlan(handler.retry, handler.timeout, Call(handler.fn, is_async(handler.fn), args))
    made = forward.made
    method = None if made is None else method_of(made.kind, kind)
    if made is None or method is None:
        return None
    sources: dict[str, Arg] = {
        "ctx": Arg("ctx", "ctx"),
        "error": Arg("error", "error"),
        "result": Arg("result", "own", name),
    }
    args = tuple(sources[each] for each in parameters(method, f"{members.label}.{name}.{kind}"))
    unchecked = Made(made.kind, made.args, validates=False)
    return HandlerPlan(ONCE, HANDLER_TIMEOUT, Call(method, is_async(method), args, unchecked))


def _seen(members: Members, wanted: str, owner: tuple[str, HandlerKind, str], seen: frozenset[str]) -> Arg:
    """Resolve what an undo or compensate reads: only what is certainly there when it runs."""
    step, kind, subject = owner
    if kind == "compensate" and wanted == "error":
        return Arg(wanted, "error")
    if wanted == step and kind == "compensate":
        raise DefinitionError(f"{subject} reads {step!r}, the step that failed; take error instead.")
    named = wanted in members.steps or wanted in members.fields
    if kind == "undo" and (wanted == step or (wanted == "result" and not named)):
        return Arg(wanted, "own", step)
    arg = read(members, wanted, subject)
    if arg.source == "step" and wanted not in seen:
        raise DefinitionError(
            f"{subject} reads {wanted!r}, which {step!r} does not depend on; "
            f"it may read what {step!r} depends on, inputs and ctx."
        )
    return arg
