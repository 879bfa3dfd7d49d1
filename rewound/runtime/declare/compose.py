"""`compose`: a reactor as a step of another one."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from rewound.errors import DefinitionError
from rewound.runtime.declare.binding import check_bind
from rewound.runtime.declare.children import ComposeDef
from rewound.runtime.declare.declared import declaration
from rewound.runtime.declare.decorators import options_of
from rewound.runtime.declare.reactor import Reactor, ReactorMeta
from rewound.runtime.declare.steps import After, StepOptions
from rewound.runtime.declare.wording import label

__all__ = ["compose"]

R = TypeVar("R")


def compose(
    child: type[Reactor[R]],
    *,
    bind: Mapping[str, Any] | None = None,
    after: After | Sequence[After] = (),
) -> ComposeDef[R]:
    """Run a reactor as one step of this one, inside the same run.

    Its result is the step's. If it fails, it has rolled itself back before its parent does; once it has
    completed, it is undone by undoing its steps, newest first.

    Args:
        child: the reactor; one defined inside this class body is the same thing.
        bind: for inputs of the child: a step object, the name of a step or input, or `value(x)`.
            Those left out are looked up by their own name; then their default applies.
        after: a step, its name, or several, to wait for without reading their results.

    Raises:
        DefinitionError: this is no reactor that could be spawned, or an option is wrong.

    Example:
        >>> class Billing(Reactor[Report]):
        ...     @step
        ...     async def total(self) -> int: ...
        ...
        ...     audit = compose(Audit, bind={"amount": total})
    """
    subject, options = checked_child("compose", child, after)
    check_bind(subject, child, bind)
    return ComposeDef(child, bind or {}, options)


def checked_child(verb: str, child: Any, after: After | Sequence[After]) -> tuple[str, StepOptions]:
    """Check a child, and give what messages about it begin with, and the step's options.

    Raises:
        DefinitionError: it is no reactor that could be spawned, or `after` is wrong.
    """
    if not isinstance(cast("object", child), ReactorMeta):
        raise DefinitionError(f"{verb}() takes a Reactor, not {child!r}.")
    subject = f"{verb}({label(child)})"
    kind: Any = child
    if kind.__parameters__:
        example = f"class My{kind.__name__}({kind.__name__}[...])"
        raise DefinitionError(
            f"{subject}: {label(child)} is generic; take a named subclass of it, such as {example}."
        )
    if not declaration(kind).reactor.wired:
        raise DefinitionError(f"{subject}: {label(child)} has no steps; take a reactor that has some.")
    return subject, options_of(subject, None, None, after, (), cancel_on_failure=False)
