"""The types of a reactor: of its inputs, and of what its steps and children give."""

from collections.abc import Callable
from typing import Any

from rewound.errors import DefinitionError
from rewound.runtime.declare.annotations import argument_of, bindings, function_hints, substitute
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.children import MapDef
from rewound.runtime.declare.classes import UseDef
from rewound.runtime.declare.declared import DeclaredMeta, FieldPlan, names_for
from rewound.runtime.declare.mismatch import mismatched, text, unskipped
from rewound.runtime.declare.plan import Plan
from rewound.runtime.declare.steps import BodyDef, StepBase
from rewound.runtime.declare.wording import label
from rewound.runtime.results import Results

__all__ = ["Types", "result_of", "root_of"]


def root_of(cls: type) -> type:
    """Find `Reactor` (or `Step`) itself among a class's bases."""
    return [each for each in cls.__mro__ if isinstance(each, DeclaredMeta)][-1]


def result_of(plan: Plan) -> Any:
    """Give the type of a reactor's result: as declared, or that of its step if it does not say."""
    if plan.returns is None:
        return type(None)
    return plan.steps[plan.returns].returns if plan.result is Any else plan.result


class Types:
    """The annotations of a reactor's inputs and steps.

    Args:
        cls: the reactor.
        inputs: its inputs.
        steps: its steps as they stand in the class.
        children: the plans of the children that some of them run.
    """

    def __init__(
        self,
        cls: type,
        inputs: tuple[FieldPlan, ...],
        steps: dict[str, StepBase[..., Any]],
        children: dict[str, Plan],
    ) -> None:
        self.cls = cls
        self.inputs = inputs
        self.children = children
        self.names = names_for(cls)
        self.bound = bindings(cls)
        self.elements: dict[str, Any] = {}  # of maps, filled in as they are planned
        self.given = {field.name: field.type for field in inputs}
        self.results = {name: self._result(name, each) for name, each in steps.items()}

    def of(self, fn: Callable[..., Any], owner: type | None, subject: str) -> dict[str, Any]:
        """Read a method's annotations, with what this class puts for type variables."""
        hints = function_hints(fn, subject, self.names)
        bound = self.bound.get(owner, {}) if owner else {}
        return {name: substitute(hint, bound) for name, hint in hints.items()}

    def _result(self, name: str, definition: StepBase[..., Any]) -> Any:
        subject = f"{label(self.cls)}.{name}"
        if isinstance(definition, UseDef):
            return _class_result(definition.kind)
        if isinstance(definition, BodyDef):
            return unskipped(self.of(definition.fn, definition.owner, subject).get("return", Any))
        result = result_of(self.children[name])
        mapped: Any = Results
        return mapped[result] if isinstance(definition, MapDef) else result

    def source(self, arg: Arg) -> tuple[Any, str]:
        """Tell what type an argument has where it comes from, and where that is."""
        if arg.source in ("step", "own"):
            return self.results[arg.key], f"the step {arg.key!r} returns"
        if arg.source == "input":
            return self.given[arg.key], f"the input {arg.key!r} is"
        if arg.source == "element":
            return self.elements[arg.key], "the element is"
        return Any, ""


def _class_result(kind: Any) -> Any:
    names = names_for(kind)
    declared = argument_of(kind, root_of(kind), names)
    owner = next(each for each in kind.__mro__ if "run" in vars(each))
    hints = function_hints(kind.run, f"{label(kind)}.run", names)
    result = unskipped(substitute(hints.get("return", declared), bindings(kind).get(owner, {})))
    if mismatched(result, declared):
        raise DefinitionError(
            f"{label(kind)} is a Step[{text(declared)}], but its run returns {text(result)}."
        )
    return result
