"""What a map iterates, as the owner reads it: a list, or a generator whose rows are stored."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from rewound.errors import EncodeError, InputError, PayloadTooLarge
from rewound.runtime.context import Context
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.codec import OutputError, encode, load_model
from rewound.runtime.declare.elements import map_of
from rewound.runtime.declare.losses import lost
from rewound.runtime.declare.mismatch import text
from rewound.runtime.declare.plan import Plan, SourcePlan, StepPlan
from rewound.runtime.declare.prepare import Sources, taken
from rewound.runtime.results import Page

__all__ = ["decode_item", "encode_item", "list_items", "open_source"]


def list_items(plan: Plan, step: StepPlan, instance: Any, result_of: Callable[[str], Any]) -> Sequence[Any]:
    """Get the list that a map iterates: an input, or the result of a step.

    Args:
        plan: the plan of the reactor that the map belongs to.
        step: the map.
        instance: that reactor with its inputs.
        result_of: gives the result of a step by name; raises `KeyError` if there is none, or
            `PayloadError` if it cannot be read.

    Raises:
        InputError: it is not there, or is no list or tuple. No element has started (rule S2).
    """
    mapped, subject = map_of(step), f"{plan.name}.{step.name}"
    over = Arg("over", "step" if mapped.source == "step" else "input", mapped.over)
    found = taken((over,), Sources(instance, result_of), subject)["over"]
    kind = found.__class__
    if not issubclass(kind, list | tuple):
        is_a = f"the {mapped.source} {mapped.over!r} is a {text(kind)}"
        raise InputError(subject, {"over": f"{is_a}, and only lists and tuples are iterated"})
    items: Sequence[Any] = found
    return items


def open_source(
    plan: Plan,
    step: StepPlan,
    instance: Any,
    result_of: Callable[[str], Any],
    *,
    ctx: Context[Any],
    cursor: Any = None,
) -> AsyncIterator[Any]:
    """Start the generator that a map iterates.

    Args:
        plan: the plan of the reactor that the map belongs to.
        step: the map.
        instance: that reactor with its inputs.
        result_of: gives the result of a step by name; raises `KeyError` if there is none, or
            `PayloadError` if it cannot be read.
        ctx: what the generator is told when it takes `ctx`.
        cursor: what the last stored page said, as plain data; `None` to begin.

    Returns:
        What the generator yields: rows, or, if the map's plan says that it is resumable, `Page`s. Close
        it with `aclose` if it is left before its end.

    Raises:
        InputError: a parameter cannot be resolved, or the cursor does not fit. Nothing was read.
    """
    generator, subject = _generator(step), f"{plan.name}.{step.name}"
    sources = Sources(instance, result_of, ctx=ctx, cursor=_cursor(generator, cursor, subject))
    given = taken(generator.call.args, sources, subject)
    return _yielded(generator, generator.call.fn(instance, **given), resumable=map_of(step).resumable)


def _generator(step: StepPlan) -> SourcePlan:
    generator = map_of(step).generator
    if generator is None:
        raise LookupError(f"{step.label} iterates no generator")
    return generator


def _cursor(generator: SourcePlan, cursor: Any, subject: str) -> Any:
    if cursor is None:
        return None
    try:
        return msgspec.convert(cursor, generator.cursor, dec_hook=load_model)
    except msgspec.ValidationError as error:
        why = f"the stored one does not fit {generator.label}: {error}"
        raise InputError(subject, {"cursor": why}) from error


async def _yielded(generator: SourcePlan, rows: AsyncIterator[Any], *, resumable: bool) -> AsyncIterator[Any]:
    """Pass on what a generator yields, as long as it is of the kind that its signature says."""
    try:
        async for row in rows:
            if isinstance(row, Page) is not resumable:
                raise OutputError(_misread(generator, row, resumable=resumable))
            yield row
    finally:
        close = getattr(rows, "aclose", None)  # a wrapper may give an iterator that is no generator
        if close is not None:
            await close()


def _misread(generator: SourcePlan, row: Any, *, resumable: bool) -> str:
    if resumable:
        return f"{generator.label} takes a cursor, so it yields Page(items, cursor), not {text(type(row))}."
    return f"{generator.label} yields a Page, so it must take the parameter cursor."


def encode_item(step: StepPlan, item: Any, *, max_payload: int) -> bytes:
    """Encode a row that a generator yielded, and check that its element will get what it says.

    Args:
        step: the map.
        item: the row.
        max_payload: the largest row allowed, in bytes.

    Raises:
        EncodeError: a part cannot be stored, or would come back as something else.
        PayloadTooLarge: it is larger than `max_payload`.
        OutputError: it is not what the generator's annotation says.
    """
    generator = _generator(step)
    raw = encode(item, f"{generator.label}: row")
    if len(raw) > max_payload:
        raise PayloadTooLarge(
            f"{generator.label}: a row takes {len(raw)} bytes, more than max_payload={max_payload}; "
            "store it elsewhere and yield a reference."
        )
    try:
        generator.decode(raw)
    except Exception as error:  # a model's own validators may raise anything
        raise OutputError(f"{generator.label} yielded no {text(generator.item)}: {error}") from error
    found = lost(item, generator.item) if generator.loose else None
    if found is not None:
        kind = text(type(found.value))
        raise EncodeError(
            f"{generator.label}: row{found.path} is a {kind} and would come back as something else; "
            f"annotate what it yields as {kind}."
        )
    return raw


def decode_item(step: StepPlan, raw: bytes) -> Any:
    """Read a stored row with the generator's annotation.

    Args:
        step: the map.
        raw: what `encode_item` gave.

    Raises:
        OutputError: it does not fit the annotation (any more).
    """
    generator = _generator(step)
    try:
        return generator.decode(raw)
    except Exception as error:
        raise OutputError(
            f"{generator.label}: a stored row is no {text(generator.item)} any more: {error}"
        ) from error
