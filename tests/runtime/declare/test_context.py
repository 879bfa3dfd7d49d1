"""The context of a step, and idempotency keys."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewound import Context
from rewound.runtime.context import Kind, idempotency_key


def test_bare_context() -> None:
    """A unit test may call a step with a bare `Context()`."""
    assert (Context().run_id, Context().attempt, Context().state) == ("", 1, None)


def test_log_names_run_step_and_attempt(caplog: pytest.LogCaptureFixture) -> None:
    """Records of `ctx.log` carry the run, the step and the attempt, next to the caller's own fields."""
    context = Context(run_id="r1", step="charge", attempt=2)
    with caplog.at_level(logging.INFO, logger="rewound.step"):
        context.log.info("charging", extra={"amount": 5})
        context.log.info("charged")
    first, second = (vars(record) for record in caplog.records)
    expected = {"run_id": "r1", "step": "charge", "attempt": 2, "amount": 5, "name": "rewound.step"}
    assert expected.items() <= first.items()
    assert "amount" not in second


KEYS = st.tuples(
    st.text(min_size=1),
    st.from_regex(r"\w{1,80}(/\w{1,80}){0,3}", fullmatch=True),
    st.integers(0, 10),
    st.sampled_from(["forward", "undo", "compensate"]),
    st.none() | st.integers(0, 10),
)


@given(one=KEYS, other=KEYS)
def test_keys_differ_by_what_they_are_made_of(
    one: tuple[str, str, int, Kind, int | None], other: tuple[str, str, int, Kind, int | None]
) -> None:
    """Two keys are the same if and only if run, path, generation, kind and element are."""
    assert (idempotency_key(*one) == idempotency_key(*other)) == (one == other)


@given(key=KEYS)
def test_keys_fit_an_http_header(key: tuple[str, str, int, Kind, int | None]) -> None:
    """A key is short printable ASCII, whatever the run and the steps are called."""
    made = idempotency_key(*key)
    assert made.isascii()
    assert made.isprintable()
    assert len(made) <= 200
