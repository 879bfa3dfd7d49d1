"""What callers give a runtime, checked and in its plainest form."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from rewound.errors import DefinitionError
from rewound.runtime.declare import Reactor

__all__ = ["State", "call_of", "check_key", "opener_of"]

State = Mapping[str, Any] | Callable[[], AbstractAsyncContextManager[Mapping[str, Any]]]


def call_of(reactor: Any, inputs: Mapping[str, Any] | None) -> tuple[type[Reactor[Any]], Any]:
    """Part what `spawn` was given into the class, and an instance or a mapping of inputs.

    Raises:
        DefinitionError: it is neither an instance alone, nor a class with or without a mapping.
    """
    kind: Any = reactor if isinstance(reactor, type) else type(reactor)
    if Reactor not in kind.__mro__:
        raise DefinitionError(f"spawn takes a reactor or its class, not {reactor!r}")
    if kind is reactor:
        return kind, inputs or {}
    if inputs is not None:
        raise DefinitionError(f"{kind.__name__} was given with its inputs; leave out the mapping")
    return kind, reactor


def check_key(key: object) -> None:
    """Refuse an idempotency key that cannot be one; raises `DefinitionError`."""
    if key is not None and not (isinstance(key, str) and key and _is_unicode(key)):
        raise DefinitionError(f"spawn(key={key!r}): a key is text that UTF-8 can encode, and not empty")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def opener_of(state: State | None) -> Callable[[], AbstractAsyncContextManager[Any]]:
    """Return the function that opens what bodies see as `ctx.state`."""
    if callable(state):
        return state
    return lambda: nullcontext(state or {})
