"""Asserting what the author of a definition is told."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from rewound import DefinitionError, Reactor

__all__ = ["declare", "refuses"]


@contextmanager
def refuses(message: str) -> Generator[None]:
    """Want a `DefinitionError` with exactly this message."""
    with pytest.raises(DefinitionError) as caught:
        yield
    assert str(caught.value) == message


def declare(name: str, body: dict[str, Any]) -> Any:
    """Create a reactor whose body a class statement could not spell, or type checkers would refuse."""
    metaclass: Any = type(Reactor)
    return metaclass(name, (Reactor,), body)
