"""What counts as a crash."""

from typing import Any

import pytest

from rewound.actors.crashes import RestartPolicy, sift
from rewound.errors import ActorError


class Cancelled(BaseException):
    """An event loop's cancellation."""


def members(group: Any) -> tuple[BaseException, ...]:
    """Return what is in a group."""
    exceptions: tuple[BaseException, ...] = group.exceptions
    return exceptions


ERROR, CANCELLED, EXIT = ValueError("error"), Cancelled(), SystemExit()


@pytest.mark.parametrize("requested", [True, False])
def test_an_exception_is_a_crash(*, requested: bool) -> None:
    """Whether or not the actor is being cancelled."""
    assert sift(ERROR, Cancelled, requested=requested) == (ERROR, None)


@pytest.mark.parametrize("requested", [True, False])
def test_the_end_of_the_interpreter_passes_through(*, requested: bool) -> None:
    """Neither restart nor log: the program ends."""
    assert sift(EXIT, Cancelled, requested=requested) == (None, EXIT)


def test_a_requested_cancellation_passes_through() -> None:
    """Cancellation is never swallowed."""
    assert sift(CANCELLED, Cancelled, requested=True) == (None, CANCELLED)


def test_a_cancellation_that_nobody_requested_is_a_crash() -> None:
    """It becomes an error that names it and keeps it as its cause."""
    crash, through = sift(CANCELLED, Cancelled, requested=False)
    assert isinstance(crash, ActorError)
    assert crash.__cause__ is CANCELLED
    assert through is None


def test_a_group_is_parted() -> None:
    """Errors are the crash; cancellation and the interpreter's end go on."""
    group = BaseExceptionGroup("both", [ERROR, CANCELLED, EXIT])
    crash, through = sift(group, Cancelled, requested=True)
    assert members(crash) == (ERROR,)
    assert members(through) == (CANCELLED, EXIT)


def test_cancellations_in_a_group_that_nobody_requested_are_dropped_beside_errors() -> None:
    """The errors are the crash; a task group cancels its other tasks when one fails."""
    group = BaseExceptionGroup("both", [ERROR, CANCELLED])
    crash, through = sift(group, Cancelled, requested=False)
    assert members(crash) == (ERROR,)
    assert through is None


def test_a_group_of_cancellations_that_nobody_requested_is_a_crash() -> None:
    """As a single one is."""
    crash, through = sift(BaseExceptionGroup("one", [CANCELLED]), Cancelled, requested=False)
    assert isinstance(crash, ActorError)
    assert through is None


def test_a_group_of_exits_passes_through() -> None:
    """Without errors and cancellations there is no crash."""
    crash, through = sift(BaseExceptionGroup("one", [EXIT]), Cancelled, requested=False)
    assert crash is None
    assert members(through) == (EXIT,)


def test_the_pause_doubles_and_forgets() -> None:
    """Each restart within the window doubles the pause; too many are refused; old ones do not count."""
    policy = RestartPolicy(most=2, window=10, backoff=0.5)
    restarts: list[float] = []
    assert [policy.pause(restarts, now) for now in (0, 1, 2)] == [0.5, 1.0, None]
    assert policy.pause(restarts, 10.5) == 1.0
    assert restarts == [1, 10.5]
