"""Durations as users give them: seconds, or a `timedelta`."""

import math
from datetime import timedelta

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
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    # bool is an int to Python; `timeout=True` is a slip, not one second
    if isinstance(duration, bool) or not isinstance(duration, int | float) or not math.isfinite(duration):
        raise DefinitionError(f"{what} must be seconds or a timedelta, not {duration!r}.")
    if duration < 0 or (duration == 0 and not zero):
        raise DefinitionError(f"{what} must be {'0 or more' if zero else 'more than 0'}, not {duration!r}.")
    return float(duration)
