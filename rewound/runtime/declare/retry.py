"""How often a step is tried, and how long to wait in between."""

from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from rewound.errors import DefinitionError, Fatal, InputError
from rewound.runtime.declare.duration import Duration, seconds

__all__ = ["ONCE", "Retry", "retry_of"]

Backoff = Literal["exponential", "linear", "fixed"]


class Retry(Struct, frozen=True, kw_only=True):
    """Try a step again when it fails.

    Args:
        attempts: how often the body runs at most, the first time included. Default 3.
        delay: seconds (or a `timedelta`) before the second attempt. Default 1.
        backoff: how the delay grows with each attempt: `exponential` (doubles), `linear` (by itself)
            or `fixed`. Default `exponential`.
        max_delay: the longest wait, in seconds or as a `timedelta`. Default 60.
        jitter: the fraction by which a wait is lengthened or shortened at random. Default 0.1.
        on: exception classes that are worth another attempt. Default every `Exception`.
        never: exception classes that are not, in addition to `Fatal` and `InputError`.

    Raises:
        DefinitionError: a value is out of its range.

    Example:
        >>> Retry(attempts=5, delay=0.5, on=(ConnectionError,)).wait(2, 0.5)
        1.0
    """

    attempts: int = 3
    delay: Duration = 1.0
    backoff: Backoff = "exponential"
    max_delay: Duration = 60.0
    jitter: float = 0.1
    on: tuple[type[BaseException], ...] = (Exception,)
    never: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        _check_attempts(self.attempts, "Retry: attempts must be 1 or more")
        if self.backoff not in get_args(Backoff):
            raise DefinitionError(f"Retry: backoff must be one of {get_args(Backoff)}, not {self.backoff!r}.")
        force_setattr(self, "delay", seconds(self.delay, "Retry: delay", zero=True))
        force_setattr(self, "max_delay", seconds(self.max_delay, "Retry: max_delay", zero=True))
        if not 0 <= self.jitter <= 1:
            raise DefinitionError(f"Retry: jitter must be between 0 and 1, not {self.jitter!r}.")
        for name, classes in (("on", self.on), ("never", self.never)):
            _check_classes(name, classes)

    def wait(self, attempt: int, random: float) -> float:
        """Tell how long to wait before the next attempt.

        Args:
            attempt: the attempt that failed, counted from 1.
            random: a number in [0, 1), given by the caller so that this stays a plain function.

        Returns:
            Seconds, at most `max_delay`.
        """
        delay, longest = (
            seconds(self.delay, "delay", zero=True),
            seconds(self.max_delay, "max_delay", zero=True),
        )
        if self.backoff == "exponential":
            # the exponent is bounded: a float overflows at 2**1024, long after any sensible max_delay
            delay *= 2.0 ** min(attempt - 1, 100)
        elif self.backoff == "linear":
            delay *= attempt
        return min(delay * (1 + self.jitter * (2 * random - 1)), longest)

    def retries(self, error: BaseException) -> bool:
        """Tell whether this kind of exception is worth another attempt.

        Attempts are not counted here: the caller knows how many were made.
        """
        return isinstance(error, self.on) and not isinstance(error, (Fatal, InputError, *self.never))


def _check_attempts(attempts: Any, wanted: str) -> None:
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        raise DefinitionError(f"{wanted}, not {attempts!r}.")


def _check_classes(name: str, classes: Any) -> None:
    if classes.__class__ is not tuple or not all(map(_is_exception, classes)):
        raise DefinitionError(f"Retry: {name} must be a tuple of exception classes, not {classes!r}.")


def _is_exception(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


ONCE = Retry(attempts=1)
"""No retry: what a step without `retry=` gets."""


def retry_of(retry: Retry | int | None, what: str) -> Retry:
    """Read a `retry=` option: a `Retry`, a number of attempts, or nothing.

    Raises:
        DefinitionError: it is something else.
    """
    if retry is None:
        return ONCE
    if isinstance(retry, Retry):
        return retry
    _check_attempts(retry, f"{what} must be a Retry or a number of attempts")
    return Retry(attempts=retry)
