"""Describing exceptions as data (lessons 13, 23 and 24)."""

import threading
from typing import NoReturn

import pytest

from rewound import InputError, StepError
from rewound.runtime.declare import describe_error


class _DeclinedError(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.lock = threading.Lock()


class _UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def describe(error: BaseException, attempts: int = 1) -> StepError:
    """Raise an exception and describe it."""
    try:
        raise error  # noqa: TRY301 - the traceback is the point
    except BaseException as caught:  # noqa: BLE001
        return describe_error(caught, step="charge", attempts=attempts)


def test_class_and_message_are_kept() -> None:
    """The exception's class name and text are kept, with the step and the attempts (lesson 13)."""
    found = describe(_DeclinedError(5, "no"), attempts=3)
    assert (found.type, found.message, found.step, found.attempts) == (
        "_DeclinedError",
        "(5, 'no')",
        "charge",
        3,
    )
    assert "in describe\n    raise error" in found.traceback
    assert found.traceback.endswith("_DeclinedError: (5, 'no')\n")
    assert found.fields == {}


def test_body_that_never_started() -> None:
    """Where no attempt was made there is no traceback of the user's to show."""
    assert describe(InputError("Charge", {"a": "b"}), attempts=0).traceback == ""


def test_unprintable() -> None:
    """An exception that cannot be printed is still described (lesson 23)."""
    found = describe(_UnprintableError())
    assert (found.type, found.message) == (
        "_UnprintableError",
        "<_UnprintableError cannot be printed: its __str__ raised RuntimeError>",
    )
    assert "_UnprintableError" in found.traceback


def test_unformattable() -> None:
    """An exception that breaks the formatting of tracebacks is described without one (lesson 23)."""

    class BrokenError(Exception):
        @property
        def __cause__(self) -> NoReturn:  # type: ignore[override]
            raise ZeroDivisionError

    found = describe(BrokenError("text"))
    assert (found.message, found.traceback) == (
        "text",
        "<no traceback: ZeroDivisionError while formatting it>",
    )


def test_deep_recursion() -> None:
    """A deep recursion leaves the last 100 frames at most (lesson 24)."""

    def down() -> None:
        further()

    def further() -> None:  # two functions, because Python sums up a line that repeats
        down()

    with pytest.raises(RecursionError) as caught:
        down()
    found = describe_error(caught.value, step="s", attempts=1)
    assert found.type == "RecursionError"
    assert found.traceback.count('File "') == 100
    assert found.traceback.endswith("RecursionError: maximum recursion depth exceeded\n")


def test_long_chain() -> None:
    """A chain of exceptions has 100 frames at most, together; the last exception is the one kept."""
    error = ValueError("0")
    for number in range(1, 200):
        try:
            raise ValueError(str(number)) from error  # noqa: TRY301 - the chain is the point
        except ValueError as caught:
            error = caught
    found = describe_error(error, step="s", attempts=1)
    assert found.traceback.count('File "') == 100
    assert found.traceback.endswith("ValueError: 199\n")


def test_group() -> None:
    """The members of an exception group are shown."""
    assert "OSError: inner" in describe(ExceptionGroup("outer", [OSError("inner")])).traceback


def test_bounded_and_storable() -> None:
    """A huge message is cut, and text that is no unicode is escaped, so that the failure can be stored."""
    found = describe(ValueError("\ud800" + "x" * 20_000))
    assert found.message.startswith("\\ud800xxx")
    assert found.message.endswith("x... (10006 characters more)")
    assert len(found.traceback) < 110_000


def test_invalid_inputs() -> None:
    """The bad fields of an `InputError` are kept, a bounded number of them."""
    assert describe(InputError("Charge", {"amount": "bad"})).fields == {"amount": "bad"}
    assert len(describe(InputError("Charge", {str(n): "bad" for n in range(500)})).fields) == 100
