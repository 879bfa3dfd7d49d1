"""What may be a step's body, and the names of its parameters."""

import inspect
from collections.abc import Callable
from typing import Any

from rewound.errors import DefinitionError
from rewound.runtime.declare.wording import label

__all__ = ["check_body", "is_async", "parameters"]

_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
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
    given = list(inspect.signature(fn).parameters.values())
    if not given or given[0].kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, _POSITIONAL):
        raise DefinitionError(f"{subject} takes no self; a step is a method of its reactor.")
    for parameter in given[1:]:
        if parameter.kind not in _NAMED:
            why = f"{_spelt(parameter)} cannot be filled by name; {_remedy(parameter)}"
            raise DefinitionError(f"{subject}: {why}.")
    return tuple(parameter.name for parameter in given[1:])


def _spelt(parameter: inspect.Parameter) -> str:
    if parameter.kind is _POSITIONAL:
        return f"positional-only {parameter.name}"
    stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
    return stars + parameter.name


def _remedy(parameter: inspect.Parameter) -> str:
    return "take the / out" if parameter.kind is _POSITIONAL else "list the parameters"
