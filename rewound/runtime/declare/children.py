"""Children as they stand in a class body: reactors that run inside their parent's run."""

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from rewound.errors import DefinitionError
from rewound.runtime.declare.steps import StepBase, StepOptions
from rewound.runtime.declare.wording import label

__all__ = ["ChildDef", "ComposeDef"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ChildDef(StepBase[..., R_co]):
    """A step that runs a reactor instead of a body, which takes back its own steps (rules C1, M6)."""

    def __init__(self, child: Any, bind: Mapping[str, Any], options: StepOptions) -> None:
        super().__init__(options, child.__doc__)
        self.child = child
        self.bind = dict(bind)

    @property
    def undo(self) -> NoReturn:
        """Refuse an undo: the child's steps have theirs."""
        raise self._no_handler("undo")

    @property
    def compensate(self) -> NoReturn:
        """Refuse a compensate: the child's steps have theirs."""
        raise self._no_handler("compensate")

    def _no_handler(self, kind: str) -> DefinitionError:
        child = label(self.child)
        return DefinitionError(f".{kind} of a child: give the steps of {child} their own @step_name.{kind}.")


class ComposeDef(ChildDef[R_co]):
    """A composed child; `Billing.audit` names it to the runtime. Type parameter: its result."""
