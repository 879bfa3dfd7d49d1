"""Planning maps: what they iterate, and of what type an element is."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from typing import Any, get_args, get_origin

from rewound.errors import DefinitionError
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.children import MapDef
from rewound.runtime.declare.codec import decoder_of, is_loose
from rewound.runtime.declare.declared import fields_of
from rewound.runtime.declare.mismatch import arms, bare, mismatched, text
from rewound.runtime.declare.plan import MapPlan, SourcePlan
from rewound.runtime.declare.typed import Types
from rewound.runtime.declare.wiring import Iterates, Wired
from rewound.runtime.declare.wording import label
from rewound.runtime.results import Page

__all__ = ["map_plan"]

_YIELDING = (AsyncIterator, AsyncIterable, AsyncGenerator)


def map_plan(name: str, wired: Wired, types: Types) -> MapPlan | None:
    """Plan a map, and note the type of its element among the types; nothing for any other step.

    Raises:
        DefinitionError: it iterates what is no list, or its source does not yield what it says.
    """
    definition, over = wired.definition, wired.over
    if not isinstance(definition, MapDef) or over is None:
        return None
    types.elements[name] = _item(name, wired, over, types)
    return MapPlan(
        child=types.children[name],
        source=over.source,
        over=over.key,
        resumable=_resumable(over),
        concurrent=definition.how.concurrent,
        batch_size=definition.how.batch_size,
        atomic=definition.how.atomic,
        bind=wired.bind,
        item=types.elements[name],
        undo_all=wired.undo_all,
        generator=_generator(over, types, types.elements[name]) if over.source == "generator" else None,
    )


def _resumable(over: Iterates) -> bool:
    return any(arg.source == "cursor" for arg in over.call.args)


def _item(name: str, wired: Wired, over: Iterates, types: Types) -> Any:
    if over.source == "generator":
        item = _yielded(over, types)
    elif over.source == "map":
        item = get_args(types.results[over.key])[0]
    else:
        listed, whence = types.source(Arg("over", over.source, over.key))
        item = _listed(listed, f"{label(types.cls)}.{name}: over= takes a list, but {whence}")
    return _taken(wired, types, name) if item is Any else item


def _taken(wired: Wired, types: Types, name: str) -> Any:
    """Give the type that the child wants, where what is iterated does not say."""
    fields = {field.name: field.type for field in fields_of(types.children[name].reactor)}
    wanted = [fields[arg.name] for arg in wired.bind if arg.source == "element"]
    return wanted[0] if len(wanted) == 1 else Any


def _listed(annotation: Any, refusal: str) -> Any:
    """Give the type of a list's items, `Any` if it is not known."""
    kinds = [arm for arm in arms(annotation) if not mismatched(arm, list) or not mismatched(arm, tuple)]
    if not kinds:
        raise DefinitionError(f"{refusal} {text(annotation)}.")
    origin, arguments = get_origin(kinds[0]), get_args(kinds[0])
    one = len(kinds) == 1 and (arguments[1:] == (...,) or (len(arguments) == 1 and _is_sequence(origin)))
    return arguments[0] if one else Any


def _is_sequence(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Sequence) and origin is not tuple


def _yielded(over: Iterates, types: Types) -> Any:
    """Give the type of a generator's rows, `Any` if it is not known."""
    hints = _hints(over, types)
    said = bare(hints.get("return", Any))
    inner = get_args(said)[0] if get_origin(said) in _YIELDING else Any
    paged = (get_origin(inner) or inner) is Page
    subject, rows = f"{label(types.cls)}.{over.key}", text(inner)
    if paged and not _resumable(over):
        raise DefinitionError(f"{subject} yields {rows}, so it must take the parameter cursor.")
    if _resumable(over) and not paged and mismatched(inner, Page):
        raise DefinitionError(f"{subject} takes a cursor, so it yields Page(items, cursor), not {rows}.")
    return (*get_args(inner), Any)[0] if paged else Any if _resumable(over) else inner


def _hints(over: Iterates, types: Types) -> dict[str, Any]:
    owner = over.definition.owner if over.definition else None
    return types.of(over.call.fn, owner, f"{label(types.cls)}.{over.key}")


def _generator(over: Iterates, types: Types, item: Any) -> SourcePlan:
    subject = f"{label(types.cls)}.{over.key}"
    return SourcePlan(
        label=subject,
        call=over.call,
        item=item,
        decode=decoder_of(item, f"{subject}: its rows"),
        loose=is_loose(item),
        cursor=_hints(over, types).get("cursor", Any),
    )
