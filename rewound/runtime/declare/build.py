"""From a class to its plan: the annotations are read here, and what they say is checked."""

from typing import Any

from rewound.errors import DefinitionError, InputError
from rewound.runtime.declare.annotations import argument_of
from rewound.runtime.declare.calls import Arg, Call
from rewound.runtime.declare.checking import checked
from rewound.runtime.declare.children import ChildDef
from rewound.runtime.declare.codec import decoder_of, is_loose
from rewound.runtime.declare.compat import fingerprint_of, shape_of
from rewound.runtime.declare.declared import DeclaredMeta, declaration, fields_of, forget_names, names_for
from rewound.runtime.declare.graph import dependents
from rewound.runtime.declare.mismatch import mismatched, text
from rewound.runtime.declare.plan import Plan, StepPlan
from rewound.runtime.declare.steps import StepBase
from rewound.runtime.declare.typed import Types, root_of
from rewound.runtime.declare.wiring import Wired
from rewound.runtime.declare.wording import label, suggestion

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
    _check_step(cls, name, wired, types)
    returns, child = types.results[name], types.children.get(name)
    last = child.steps[child.returns] if child and child.returns else None
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
        # a child's result is stored as its own step gave it
        decode=last.decode if last else decoder_of(returns, f"{subject}: its result"),
        loose=last.loose if last else is_loose(returns),
        child=child,
        bind=wired.bind,
    )


def _check_step(cls: type, name: str, wired: Wired, types: Types) -> None:
    subject, definition = f"{label(cls)}.{name}", wired.definition
    if isinstance(definition, ChildDef):
        _check_inputs(types, definition.child, wired.bind, subject)
        return
    _check_reads(types, wired.call, subject, definition.owner)
    for handler in (wired.undo, wired.compensate):
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
        name = given.name if isinstance(given, StepBase) else given
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
