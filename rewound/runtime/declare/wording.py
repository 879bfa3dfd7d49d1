"""Words for error messages: what a thing is called, and what might have been meant."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["label", "suggestion"]


def label(named: object) -> str:
    """Name a class or function as its author would: `Checkout.charge`, without enclosing functions."""
    name = getattr(named, "__qualname__", None) or type(named).__qualname__
    return str(name).rpartition("<locals>.")[2]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Write ` Did you mean 'reserve'?` if one of the known names is close, else nothing."""
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
