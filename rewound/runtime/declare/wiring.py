"""Wiring by name: what each parameter reads, what each step therefore needs. No annotation is read here."""

import inspect
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.calls import Arg, Call, Made
from rewound.runtime.declare.classes import UseDef, Value, method_of
from rewound.runtime.declare.declared import defaults_of
from rewound.runtime.declare.graph import ancestors, check_cycles
from rewound.runtime.declare.members import Members
from rewound.runtime.declare.plan import HandlerPlan
from rewound.runtime.declare.retry import ONCE
from rewound.runtime.declare.signature import is_async, parameters
from rewound.runtime.declare.steps import HANDLER_TIMEOUT, HandlerDef, HandlerKind, StepBase
from rewound.runtime.declare.wording import suggestion

__all__ = ["Wired", "wire"]


class Wired(Struct, frozen=True):
    """A step with every name resolved.

    Args:
        definition: as it stands in the class.
        needs: the steps it waits for, in definition order.
        call: its body.
        undo: its undo, if any.
        compensate: its compensate, if any.
    """

    definition: StepBase[..., Any]
    needs: tuple[str, ...]
    call: Call
    undo: HandlerPlan | None
    compensate: HandlerPlan | None


def wire(members: Members) -> dict[str, Wired]:
    """Resolve every name that steps and handlers use.

    Raises:
        DefinitionError: a name stands for nothing, or may not be used there; or steps need each other.
    """
    calls = {name: _forward(members, name) for name in members.steps}
    needs = {name: _needs(members, name, call) for name, call in calls.items()}
    check_cycles(needs, members.label)
    wired: dict[str, Wired] = {}
    for name, definition in members.steps.items():
        seen = frozenset(ancestors(needs, name))
        undo = _handler(members, name, "undo", calls[name], seen)
        compensate = _handler(members, name, "compensate", calls[name], seen)
        wired[name] = Wired(definition, needs[name], calls[name], undo, compensate)
    return wired


def _forward(members: Members, name: str) -> Call:
    definition, subject = members.steps[name], f"{members.label}.{name}"
    if isinstance(definition, UseDef):
        ctx = tuple(Arg(each, "ctx") for each in parameters(definition.fn, subject))
        made = Made(definition.kind, _bound(members, name, definition), validates=True)
        return Call(definition.fn, is_async(definition.fn), ctx, made)
    args = tuple(_read(members, each, subject) for each in parameters(definition.fn, subject))
    if any(arg.key == name for arg in args):
        raise DefinitionError(f"{subject} reads its own result, which is not there before it ran.")
    return Call(definition.fn, is_async(definition.fn), args)


def _read(members: Members, name: str, subject: str) -> Arg:
    if name == "ctx":
        return Arg(name, "ctx")
    return Arg(name, *_named(members, name, subject))


def _named(members: Members, name: str, subject: str) -> tuple[Any, str]:
    if name in members.steps:
        return "step", name
    if name in members.fields:
        return "input", name
    raise DefinitionError(_unknown(members, name, subject))


def _unknown(members: Members, name: str, subject: str) -> str:
    found: Any = inspect.getattr_static(members.cls, name, None)
    if name == "error":
        return f"{subject} reads 'error', which only a compensate is given."
    if isinstance(found, HandlerDef):
        return f"{subject} reads {name!r}, which is the {found.kind} of {found.target.name!r}, not a step."
    if inspect.isfunction(found):
        return f"{subject} reads {name!r}, which is a method, not a step: add @step."
    if found is not None:
        return f"{subject} reads {name!r}, which is a class attribute, not an input: annotate it."
    known = (*members.steps, *members.fields, "ctx")
    return f"{subject}: no step or input {name!r}.{suggestion(name, known)}"


def _bound(members: Members, name: str, definition: UseDef[Any]) -> tuple[Arg, ...]:
    subject = f"{members.label}.{name}"
    optional = defaults_of(definition.kind)
    args: list[Arg] = []
    for field in getattr(definition.kind, "__struct_fields__", ()):
        bound = definition.bind.get(field)
        if isinstance(bound, Value):
            args.append(Arg(field, "value", value=bound.value))
        elif bound is not None:
            args.append(Arg(field, *_target(members, bound, f"{subject}: bind of {field!r}")))
        elif field != name and (field in members.steps or field in members.fields):
            args.append(Arg(field, *_named(members, field, subject)))
        elif field not in optional:
            raise DefinitionError(f"{_unknown(members, field, subject)} Bind it: bind={{{field!r}: ...}}.")
    return tuple(args)


def _target(members: Members, target: StepBase[..., Any] | str, subject: str) -> tuple[Any, str]:
    if isinstance(target, str):
        return _named(members, target, subject)
    if target.name not in members.steps:
        raise DefinitionError(f"{subject} names a step that {members.label} does not have.")
    return "step", target.name


def _needs(members: Members, name: str, call: Call) -> tuple[str, ...]:
    wanted = set(_steps(call.args)) | set(_steps(call.made.args if call.made else ()))
    for each in members.steps[name].options.after:
        subject = f"{members.label}.{name}: after="
        kind, target = _target(members, each, subject)
        if kind == "input":
            raise DefinitionError(f"{subject} names {target!r}, which is an input, not a step.")
        wanted.add(target)
    return tuple(step for step in members.steps if step in wanted)


def _steps(args: Iterable[Arg]) -> list[str]:
    return [arg.key for arg in args if arg.source == "step"]


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


def _seen(members: Members, read: str, owner: tuple[str, HandlerKind, str], seen: frozenset[str]) -> Arg:
    """Resolve what an undo or compensate reads: only what is certainly there when it runs."""
    step, kind, subject = owner
    if kind == "compensate" and read == "error":
        return Arg(read, "error")
    if read == step and kind == "compensate":
        raise DefinitionError(f"{subject} reads {step!r}, the step that failed; take error instead.")
    named = read in members.steps or read in members.fields
    if kind == "undo" and (read == step or (read == "result" and not named)):
        return Arg(read, "own", step)
    arg = _read(members, read, subject)
    if arg.source == "step" and read not in seen:
        raise DefinitionError(
            f"{subject} reads {read!r}, which {step!r} does not depend on; "
            f"it may read what {step!r} depends on, inputs and ctx."
        )
    return arg
