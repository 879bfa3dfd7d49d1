"""`Retry` and durations."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewound import DefinitionError, Fatal, InputError, Reactor, Retry, plan_of, step
from rewound.runtime.declare import seconds


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        ("exponential", [2.0, 4.0, 8.0, 10.0]),
        ("linear", [2.0, 4.0, 6.0, 8.0]),
        ("fixed", [2.0, 2.0, 2.0, 2.0]),
    ],
)
def test_backoff(backoff: Any, waits: list[float]) -> None:
    """The wait grows as the backoff says, up to `max_delay`."""
    retry = Retry(delay=2, backoff=backoff, max_delay=10, jitter=0)
    assert [retry.wait(attempt, 0.9) for attempt in (1, 2, 3, 4)] == waits


@pytest.mark.parametrize(("random", "wait"), [(0.0, 8.0), (0.5, 10.0), (0.75, 11.0)])
def test_jitter(random: float, wait: float) -> None:
    """Jitter lengthens or shortens a wait by at most its fraction."""
    assert Retry(delay=10, jitter=0.2).wait(1, random) == pytest.approx(wait)


@given(attempt=st.integers(1, 10**9), random=st.floats(0, 1, exclude_max=True))
def test_wait_is_bounded(attempt: int, random: float) -> None:
    """No number of attempts makes a wait negative, infinite or longer than `max_delay`."""
    assert 0 <= Retry().wait(attempt, random) <= 60


def test_durations_may_be_timedeltas() -> None:
    """`delay` and `max_delay` take a `timedelta` as well as seconds."""
    retry = Retry(delay=timedelta(minutes=1), max_delay=timedelta(seconds=30), jitter=0)
    assert retry == Retry(delay=60, max_delay=30, jitter=0)
    assert retry.wait(1, 0) == 30


def test_retries_by_class() -> None:
    """Only exceptions in `on` are retried, and none in `never`."""
    retry = Retry(on=(OSError,), never=(FileNotFoundError,))
    assert [retry.retries(error) for error in (OSError(), ValueError(), FileNotFoundError())] == [
        True,
        False,
        False,
    ]


def test_fatal_and_invalid_inputs_are_never_retried() -> None:
    """`Fatal` and `InputError` are not retried, whatever `on` says (lesson 15, A4)."""
    retry = Retry(on=(BaseException,))
    assert not retry.retries(Fatal("no"))
    assert not retry.retries(InputError("Charge", {"amount": "bad"}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"attempts": 0}, "Retry: attempts must be 1 or more, not 0."),
        ({"attempts": True}, "Retry: attempts must be 1 or more, not True."),
        ({"delay": -1}, "Retry: delay must be 0 or more, not -1."),
        ({"max_delay": float("inf")}, "Retry: max_delay must be seconds or a timedelta, not inf."),
        ({"jitter": 2}, "Retry: jitter must be between 0 and 1, not 2."),
        ({"on": ValueError}, "Retry: on must be a tuple of exception classes, not <class 'ValueError'>."),
        ({"never": ("x",)}, "Retry: never must be a tuple of exception classes, not ('x',)."),
        (
            {"backoff": "slow"},
            "Retry: backoff must be one of ('exponential', 'linear', 'fixed'), not 'slow'.",
        ),
    ],
)
def test_wrong_values(wrong: dict[str, Any], message: str) -> None:
    """A value out of its range is refused by name."""
    with pytest.raises(DefinitionError) as caught:
        Retry(**wrong)
    assert str(caught.value) == message


def test_number_of_attempts() -> None:
    """`retry=3` is short for `Retry(attempts=3)`; without `retry=` a step runs once."""

    class Two(Reactor[None]):
        @step(retry=3)
        async def often(self) -> None: ...

        @step
        async def once(self) -> None: ...

    steps = plan_of(Two).steps
    assert (steps["often"].retry, steps["once"].retry) == (Retry(attempts=3), Retry(attempts=1))


@pytest.mark.parametrize("wrong", [0, True, "3"])
def test_wrong_retry_option(wrong: Any) -> None:
    """`retry=` takes a `Retry` or a positive number; the message names the step."""
    with pytest.raises(DefinitionError, match=r"body: retry must be a Retry or a number of attempts, not "):

        @step(retry=wrong)
        async def body(self: object) -> None: ...


def test_seconds() -> None:
    """A duration is seconds or a `timedelta`, and nothing else."""
    assert (seconds(2, "wait"), seconds(timedelta(hours=1), "wait")) == (2.0, 3600.0)
    wrong: Any
    for wrong in (0, -1, True, "5", float("nan"), timedelta()):
        with pytest.raises(DefinitionError, match=r"^wait must be "):
            seconds(wrong, "wait")
