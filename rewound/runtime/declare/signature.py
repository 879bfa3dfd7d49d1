"""What may be a step's body, and the names of its parameters."""

import inspect
from collections.abc import Callable
from typing import Any

from rewound.errors import DefinitionError
from rewound.runtime.declare.wording import label

__all__ = ["check_body", "is_async", "parameters"]

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def is_async(fn: Callable[..., Any]) -> bool:
    """Tell whether calling the function gives a coroutine.

    A decorator made with `functools.wraps` around an `async def` passes its coroutine on, so what it
    wraps decides.
    """
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(inspect.unwrap(fn))


def check_body(fn: object, what: str) -> None:
    """Refuse a body that is no function, or that yields.

    Args:
        fn: what was decorated.
        what: the decorator, for the message.

    Raises:
        DefinitionError: it cannot be a step's body.
    """
    if isinstance(fn, staticmethod | classmethod | type) or not callable(fn):
        raise DefinitionError(f"{what} decorates a function that takes self, not {fn!r}.")
    bare = inspect.unwrap(fn)
    if inspect.isgeneratorfunction(bare) or inspect.isasyncgenfunction(bare):
        raise DefinitionError(f"{label(fn)} yields; the body of {what} returns one value.")


def parameters(fn: Callable[..., Any], subject: str) -> tuple[str, ...]:
    """List a body's parameters after `self`.

    Args:
        fn: the function.
        subject: what an error message begins with, such as `Checkout.charge`.

    Raises:
        DefinitionError: there is no `self`, or a parameter that cannot be filled by name.
    """
    first, *rest = list(inspect.signature(fn).parameters.values()) or [None]
    if first is None or first.kind is inspect.Parameter.KEYWORD_ONLY:
        raise DefinitionError(f"{subject} takes no self; a step is a method of its reactor.")
    if first.kind is inspect.Parameter.VAR_KEYWORD:
        raise DefinitionError(f"{subject}: **{first.name} cannot be filled by name; list the parameters.")
    for parameter in rest:
        if parameter.kind not in _NAMED:
            raise DefinitionError(
                f"{subject}: {_spelt(parameter)} cannot be filled by name; {_remedy(parameter)}."
            )
    return tuple(parameter.name for parameter in rest if parameter is not None)


def _spelt(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return stars.get(parameter.kind, "positional-only ") + parameter.name


def _remedy(parameter: inspect.Parameter) -> str:
    only = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    return "take the / out" if only else "list the parameters"
