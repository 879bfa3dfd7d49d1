"""From a class to its plan: the annotations are read here, and what they say is checked."""

from collections.abc import Callable
from typing import Any, get_origin

from rewound.errors import DefinitionError, InputError
from rewound.runtime.declare.annotations import argument_of
from rewound.runtime.declare.calls import Arg, Call
from rewound.runtime.declare.checking import checked
from rewound.runtime.declare.children import ChildDef
from rewound.runtime.declare.codec import decoder_of, is_loose
from rewound.runtime.declare.compat import fingerprint_of, shape_of
from rewound.runtime.declare.declared import DeclaredMeta, declaration, fields_of, forget_names, names_for
from rewound.runtime.declare.graph import dependents
from rewound.runtime.declare.mapped import map_plan
from rewound.runtime.declare.member import Member
from rewound.runtime.declare.mismatch import mismatched, text
from rewound.runtime.declare.plan import MapPlan, Plan, StepPlan
from rewound.runtime.declare.typed import Types, root_of
from rewound.runtime.declare.wiring import Wired
from rewound.runtime.declare.wording import label, suggestion
from rewound.runtime.results import Results

__all__ = ["plan_of"]


def plan_of(cls: type[Any]) -> Plan:
    """Get the plan of a reactor, worked out once.

    Args:
        cls: the reactor.

    Raises:
        DefinitionError: it is abstract or generic, an annotation cannot be read, or types do not fit.

    Example:
        >>> plan_of(Greet).roots
        ('hello',)
    """
    if not isinstance(cls, DeclaredMeta) or declaration(cls).reactor is None:
        raise DefinitionError(f"{cls!r} is not a reactor; derive it from Reactor.")
    kept = declaration(cls)
    if kept.plan is None:
        kept.plan = _build(cls)
        forget_names(cls)
    plan: Plan = kept.plan
    return plan


def _build(cls: Any) -> Plan:
    facts = declaration(cls).reactor
    if cls.__parameters__:
        example = f"class My{cls.__name__}({cls.__name__}[...])"
        raise DefinitionError(f"{label(cls)} is generic: spawn a named subclass of it, such as {example}.")
    if not facts.wired:
        raise DefinitionError(f"{label(cls)} has no steps: it is abstract, to be inherited and not spawned.")
    definitions = {name: wired.definition for name, wired in facts.wired.items()}
    children = {name: plan_of(each.child) for name, each in definitions.items() if isinstance(each, ChildDef)}
    types = Types(cls, fields_of(cls), definitions, children)
    steps = {name: _step(cls, name, wired, types) for name, wired in facts.wired.items()}
    needs = {name: step.needs for name, step in steps.items()}
    readers = dependents(needs)
    shape = shape_of(types.inputs, steps)
    result = argument_of(cls, root_of(cls), names_for(cls))
    return Plan(
        reactor=cls,
        name=facts.name,
        version=facts.version,
        timeout=facts.timeout,
        guards=facts.guards,
        fingerprint=fingerprint_of(shape, facts.version),
        inputs=types.inputs,
        steps=steps,
        dependents=readers,
        roots=tuple(name for name, wanted in needs.items() if not wanted),
        returns=_returns(cls, result, steps, readers),
        result=result,
        shape=shape,
    )


def _step(cls: type, name: str, wired: Wired, types: Types) -> StepPlan:
    subject, options = f"{label(cls)}.{name}", wired.definition.options
    mapped = map_plan(name, wired, types)
    _check_step(cls, name, wired, types)
    returns = types.results[name]
    child = None if mapped else types.children.get(name)
    decode, loose = _reading(mapped, child, returns, f"{subject}: its result")
    return StepPlan(
        name=name,
        label=subject,
        needs=wired.needs,
        retry=options.retry,
        timeout=options.timeout,
        cancel_on_failure=options.cancel_on_failure,
        guards=options.guards,
        call=wired.call,
        undo=wired.undo,
        compensate=wired.compensate,
        returns=returns,
        decode=decode,
        loose=loose,
        child=child,
        bind=() if mapped else wired.bind,
        map=mapped,
        collects=options.collects.name if options.collects else None,
    )


def _reading(
    mapped: MapPlan | None, child: Plan | None, returns: Any, subject: str
) -> tuple[Callable[[bytes], Any], bool]:
    if mapped is not None:
        return _by_page, False
    if child is not None and child.returns is not None:  # stored as the child's own step gave it
        last = child.steps[child.returns]
        return last.decode, last.loose
    return decoder_of(returns, subject), is_loose(returns)


def _by_page(raw: bytes) -> Any:  # noqa: ARG001
    raise LookupError("the results of a map are read by page, from where its elements are stored")


def _check_step(cls: type, name: str, wired: Wired, types: Types) -> None:
    subject, definition = f"{label(cls)}.{name}", wired.definition
    if isinstance(definition, ChildDef):
        _check_inputs(types, definition.child, wired.bind, subject)
    else:
        _check_reads(types, wired.call, subject, definition.owner)
    if wired.over is not None and wired.over.definition is not None:
        _check_reads(types, wired.over.call, f"{label(cls)}.{wired.over.key}", wired.over.definition.owner)
    for handler in (wired.undo, wired.compensate, wired.undo_all):
        if handler is not None:
            _check_reads(types, handler.call, f"{label(cls)}.{handler.call.fn.__name__}", definition.owner)


def _check_reads(types: Types, call: Call, subject: str, owner: type | None) -> None:
    if call.made is not None:
        _check_inputs(types, call.made.kind, call.made.args, subject)
        return
    hints = types.of(call.fn, owner, subject)
    for arg in call.args:
        _check_read(types, arg, hints.get(arg.name, Any), subject)


def _check_inputs(types: Types, kind: Any, args: tuple[Arg, ...], subject: str) -> None:
    fields = {field.name: field for field in fields_of(kind)}
    for arg in args:
        source, _ = types.source(arg)
        if (get_origin(source) or source) is Results:
            raise DefinitionError(
                f"{subject}: {arg.key!r} gives {text(source)}, which cannot be an input: it is read by page. "
                f"Let a collector or a step make a value of it."
            )
        _check_read(types, arg, fields[arg.name].type, subject)
        if arg.source == "value":
            try:
                checked([fields[arg.name]], {arg.name: arg.value}, subject)
            except InputError as error:
                raise DefinitionError(
                    f"{subject}: bind={{{arg.name!r}: value(...)}} does not fit: {error}"
                ) from error


def _check_read(types: Types, arg: Arg, reader: Any, subject: str) -> None:
    source, whence = types.source(arg)
    if mismatched(source, reader):
        raise DefinitionError(f"{subject} reads {arg.name!r} as {text(reader)}, but {whence} {text(source)}.")


def _returns(
    cls: Any, result: Any, steps: dict[str, StepPlan], readers: dict[str, tuple[str, ...]]
) -> str | None:
    given = getattr(cls, "returns", None)
    if given is not None:
        name = given.name if isinstance(given, Member) else given
        if name not in steps:
            near = suggestion(name, steps) if isinstance(name, str) else ""
            raise DefinitionError(f"{label(cls)}: returns = takes one of its steps, not {name!r}.{near}")
    elif result is type(None):
        return None
    else:
        name = _only_leaf(cls, readers)
    if mismatched(steps[name].returns, result):
        raise DefinitionError(
            f"{label(cls)} is a Reactor[{text(result)}], but its result is that of {name!r}, "
            f"which returns {text(steps[name].returns)}."
        )
    return name


def _only_leaf(cls: type, readers: dict[str, tuple[str, ...]]) -> str:
    leaves = [name for name, needed_by in readers.items() if not needed_by]
    if len(leaves) > 1:
        raise DefinitionError(
            f"{label(cls)}: several results possible ({', '.join(leaves)}): add returns = ..."
        )
    return leaves[0]
