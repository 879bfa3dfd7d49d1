"""Exceptions that a task group has wrapped."""

from typing import cast

__all__ = ["first_in"]


def first_in(error: BaseException) -> BaseException:
    """Return the first exception in a group, however deep; any other exception is its own first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
