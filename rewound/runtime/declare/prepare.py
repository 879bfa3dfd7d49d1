"""Turning a step into a call: its arguments by name, its body ready to start."""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from rewound.errors import InputError, PayloadError
from rewound.runtime.context import Context
from rewound.runtime.declare.calls import MISSING, Arg, Call, Made
from rewound.runtime.declare.checking import checked, lenient
from rewound.runtime.declare.declared import fields_of
from rewound.runtime.declare.plan import Plan, StepPlan
from rewound.runtime.outcomes import StepError

__all__ = ["Sources", "prepare", "taken"]


class Sources(Struct):
    """Everything an argument may come from.

    Args:
        instance: the reactor with the run's inputs.
        result_of: gives the result of a step by name.
        own: the step's own result.
        error: why the step failed.
        ctx: the context.
        item: the element of a map.
        cursor: where a source goes on.
    """

    instance: Any
    result_of: Callable[[str], Any]
    own: Any = MISSING
    error: StepError | None = None
    ctx: Context[Any] | None = None
    item: Any = None
    cursor: Any = None


def prepare(
    plan: Plan,
    step: StepPlan,
    call: Call,
    instance: Any,
    result_of: Callable[[str], Any],
    *,
    ctx: Context[Any],
    own: Any = MISSING,
    error: StepError | None = None,
) -> Callable[[], Any]:
    """Resolve the arguments of a body.

    Args:
        plan: the reactor's plan.
        step: the step's plan.
        call: the step's own call, or that of its undo or compensate.
        instance: the reactor with the run's inputs.
        result_of: gives the result of another step by name; raises `KeyError` if there is none, or
            `PayloadError` if it cannot be read.
        ctx: what the body is told when it takes `ctx`.
        own: the step's own result, for its undo. Default: `result_of` is asked.
        error: why the step failed, for its compensate.

    Returns:
        A function without parameters that starts the body: it gives a coroutine if `call.is_async`,
        else the result.

    Raises:
        InputError: an argument cannot be resolved, or does not fit a class step. The body has not
            started, so the step is not compensated (rule S2).
    """
    if call.made is None and not call.args:
        return partial(call.fn, instance)
    sources = Sources(instance, result_of, own, error, ctx)
    subject = f"{plan.name}.{step.name}"
    receiver = instance if call.made is None else _make(call.made, sources, subject)
    return partial(call.fn, receiver, **taken(call.args, sources, subject))


def taken(args: tuple[Arg, ...], sources: Sources, subject: str) -> dict[str, Any]:
    """Resolve arguments.

    Raises:
        InputError: with every one that cannot be resolved.
    """
    found: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for arg in args:
        try:
            found[arg.name] = _take(arg, sources)
        except KeyError:
            refused[arg.name] = f"the step {arg.key!r} has no result"
        except PayloadError as error:
            refused[arg.name] = f"the result of {arg.key!r} cannot be read: {error}"
    if refused:
        raise InputError(subject, refused)
    return found


def _take(arg: Arg, sources: Sources) -> Any:
    if arg.source == "step":
        return sources.result_of(arg.key)
    if arg.source == "input":
        return getattr(sources.instance, arg.key)
    if arg.source == "own":
        return sources.result_of(arg.key) if sources.own is MISSING else sources.own
    given = {"ctx": sources.ctx, "error": sources.error, "element": sources.item, "cursor": sources.cursor}
    return given.get(arg.source, arg.value)


def _make(made: Made, sources: Sources, subject: str) -> Any:
    given = taken(made.args, sources, subject)
    fields = [field for field in fields_of(made.kind) if field.name in given]
    if made.validates:
        return made.kind(**{name: value.decoded for name, value in checked(fields, given, subject).items()})
    return made.kind(**lenient(fields, given))
