"""What `bind=` takes: a step or its name, an input's name, a constant, or a map's element."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.steps import StepBase
from rewound.runtime.declare.wording import label, suggestion

__all__ = ["Element", "Value", "check_bind", "element", "value"]


class Value(Struct, frozen=True):
    """A constant in `bind=`; made by `value`."""

    value: Any


class Element(Struct, frozen=True):
    """The element of a map in `bind=`; made by `element`."""


def value(constant: Any) -> Any:
    """Bind an input to a constant.

    Args:
        constant: what the input gets.

    Example:
        >>> charge = use(Charge, bind={"currency": value("EUR")})
    """
    return Value(constant)


def element() -> Any:
    """Bind an input of a map's child to the element: each run of the child gets its own.

    Example:
        >>> charges = fan_out(ChargeOrder, over=rows, bind={"order": element(), "rate": "rate"})
    """
    return Element()


def check_bind(subject: str, kind: Any, bind: Mapping[str, Any] | None, *, elements: bool = False) -> None:
    """Check what can be checked of `bind=` before its names can be resolved.

    Args:
        subject: what an error message begins with, such as `use(Charge)`.
        kind: the class step or reactor whose inputs are bound.
        bind: as the user gave it.
        elements: whether there is an element to bind.

    Raises:
        DefinitionError: it names what is no input, or gives what cannot be bound.
    """
    for name, bound in (bind or {}).items():
        if name not in kind.__struct_fields__:
            near = suggestion(name, kind.__struct_fields__)
            raise DefinitionError(
                f"{subject}: bind names {name!r}, which is not an input of {label(kind)}.{near}"
            )
        if isinstance(bound, Element) and not elements:
            raise DefinitionError(
                f"{subject}: bind={{{name!r}: element()}}: only fan_out and map_each have an element."
            )
        if not isinstance(bound, str | StepBase | Value | Element):
            takes = "takes a step, a name or value(...)"
            raise DefinitionError(f"{subject}: bind={{{name!r}: ...}} {takes}, not {bound!r}.")
