"""From an exception to data: what is stored of a failure, whatever the exception is made of."""

import traceback

from rewound.errors import InputError
from rewound.runtime.outcomes import StepError

__all__ = ["describe_error"]

FRAMES = 100
_LONGEST_MESSAGE = 10_000
_LONGEST_TRACEBACK = 100_000
_MOST_FIELDS = 100


def describe_error(error: BaseException, *, step: str, attempts: int) -> StepError:
    """Describe an exception as data; never fails, and never takes more than some 100 kB.

    Args:
        error: the exception; one that cannot be printed is described by its class.
        step: the step that failed.
        attempts: how many attempts were made; 0 if the body never started.

    Example:
        >>> describe_error(ValueError("no"), step="charge", attempts=3).message
        'no'
    """
    fields = dict(list(error.fields.items())[:_MOST_FIELDS]) if isinstance(error, InputError) else {}
    trace = _traceback(error) if attempts else ""
    return StepError(type(error).__name__, _message(error), step, attempts, trace, fields)


def _message(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception as second:  # noqa: BLE001  # the exception's own __str__ may raise anything
        return f"<{type(error).__name__} cannot be printed: its __str__ raised {type(second).__name__}>"
    return _storable(message, _LONGEST_MESSAGE)


def _traceback(error: BaseException) -> str:
    try:
        whole = traceback.TracebackException.from_exception(error, limit=-FRAMES)
        lines = "".join(whole.format()).splitlines(keepends=True)
    except Exception as second:  # noqa: BLE001  # notes and causes are the exception's own, too
        return f"<no traceback: {type(second).__name__} while formatting it>"
    return _storable("".join(_last_frames(lines)), _LONGEST_TRACEBACK)


def _last_frames(lines: list[str]) -> list[str]:
    """Keep the last frames of a chain of exceptions, together no more than the limit."""
    starts = [index for index, line in enumerate(lines) if line.lstrip(" |").startswith('File "')]
    return lines if len(starts) <= FRAMES else lines[starts[-FRAMES] :]


def _storable(words: str, longest: int) -> str:
    words = words.encode(errors="backslashreplace").decode()
    return (
        words if len(words) <= longest else f"{words[:longest]}... ({len(words) - longest} characters more)"
    )
