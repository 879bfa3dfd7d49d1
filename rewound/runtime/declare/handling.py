"""Wiring undos and compensates: which method it is, and what its parameters read."""

from rewound.errors import DefinitionError
from rewound.runtime.declare.calls import Arg, Call, Made
from rewound.runtime.declare.classes import method_of
from rewound.runtime.declare.handlers import HANDLER_TIMEOUT, HandlerKind
from rewound.runtime.declare.members import Members
from rewound.runtime.declare.names import read
from rewound.runtime.declare.plan import HandlerPlan
from rewound.runtime.declare.retry import ONCE
from rewound.runtime.declare.signature import is_async, parameters

__all__ = ["handler"]


def handler(
    members: Members, step: str, kind: HandlerKind, forward: Call, seen: frozenset[str]
) -> HandlerPlan | None:
    """Resolve one handler of a step; nothing if it has none.

    Args:
        members: the reactor.
        step: the step.
        kind: which handler.
        forward: the step's own call; that of a class step brings its handlers along.
        seen: everything that the step depends on, directly or not.

    Raises:
        DefinitionError: it reads what stands for nothing, or is not certainly there when it runs.
    """
    declared = members.handlers.get((step, kind))
    if declared is None:
        return (
            None
            if forward.made is None or kind == "undo_all"
            else _of_class(members, step, kind, forward.made)
        )
    subject = f"{members.label}.{declared.name}"
    args = tuple(
        _seen(members, each, (step, kind, subject), seen) for each in parameters(declared.fn, subject)
    )
    return HandlerPlan(declared.retry, declared.timeout, Call(declared.fn, is_async(declared.fn), args))


def _of_class(members: Members, step: str, kind: HandlerKind, made: Made) -> HandlerPlan | None:
    method = method_of(made.kind, kind)
    if method is None:
        return None
    sources: dict[str, Arg] = {
        "ctx": Arg("ctx", "ctx"),
        "error": Arg("error", "error"),
        "result": Arg("result", "own", step),
    }
    args = tuple(sources[each] for each in parameters(method, f"{members.label}.{step}.{kind}"))
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
    if kind != "compensate" and (wanted == step or (wanted == "result" and not named)):
        return Arg(wanted, "own", step)
    arg = read(members, wanted, subject)
    if arg.source == "step" and wanted not in seen:
        raise DefinitionError(
            f"{subject} reads {wanted!r}, which {step!r} does not depend on; "
            f"it may read what {step!r} depends on, inputs and ctx."
        )
    return arg
