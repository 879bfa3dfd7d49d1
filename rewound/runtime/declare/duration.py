"""Durations as users give them: seconds, or a `timedelta`."""

import math
from datetime import timedelta
from typing import Any

from rewound.errors import DefinitionError

__all__ = ["Duration", "seconds"]

Duration = float | timedelta


def seconds(duration: Duration, what: str, *, zero: bool = False) -> float:
    """Turn a duration into seconds.

    Args:
        duration: seconds, or a `timedelta`.
        what: the name that an error message begins with, such as `Checkout.charge: timeout`.
        zero: whether a duration of nothing is allowed.

    Raises:
        DefinitionError: it is not a number of seconds, not finite, or not positive.
    """
    given: Any = duration.total_seconds() if isinstance(duration, timedelta) else duration
    # bool is an int to Python; `timeout=True` is a slip, not one second
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise DefinitionError(f"{what} must be seconds or a timedelta, not {given!r}.")
    if given < 0 or (given == 0 and not zero):
        raise DefinitionError(f"{what} must be {'0 or more' if zero else 'more than 0'}, not {given!r}.")
    return float(given)
