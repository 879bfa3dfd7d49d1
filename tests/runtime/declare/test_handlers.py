"""What an undo and a compensate may read, and their options (rules S5, S10)."""

# pyright: reportUnusedClass=false
# the classes are refused; nobody could use them

from datetime import timedelta
from typing import Any

import pytest

from rewound import Context, Reactor, Retry, StepError, plan_of, step
from rewound.runtime.declare import HandlerPlan
from tests.runtime.declare.refusals import refuses


class _Checkout(Reactor[None]):
    order: int

    @step
    async def reserve(self) -> int:
        return 1

    @step
    async def charge(self, reserve: int) -> str:
        return ""

    @charge.compensate(retry=Retry(attempts=2), timeout=timedelta(minutes=2))
    async def void(self, error: StepError, reserve: int, order: int, ctx: Context[Any]) -> None: ...

    @charge.undo(retry=3, timeout=5)
    async def refund(self, charge: str, reserve: int, order: int, ctx: Context[Any]) -> None: ...

    @step(after=charge)
    async def ship(self) -> int:
        return 1

    @ship.undo
    def recall(self, result: int, charge: str, reserve: int) -> None: ...


def _handler(step: str, kind: str) -> HandlerPlan:
    found: HandlerPlan = getattr(plan_of(_Checkout).steps[step], kind)
    return found


def _sources(plan: HandlerPlan) -> list[tuple[str, str, str]]:
    return [(arg.name, arg.source, arg.key) for arg in plan.call.args]


def test_undo_reads() -> None:
    """An undo sees its own result, what its step depends on, inputs and `ctx`."""
    assert _sources(_handler("charge", "undo")) == [
        ("charge", "own", "charge"),
        ("reserve", "step", "reserve"),
        ("order", "input", "order"),
        ("ctx", "ctx", ""),
    ]


def test_undo_reads_result_and_distant_steps() -> None:
    """Its own result is also `result`; what it depends on through others, or `after=`, is there as well."""
    assert _sources(_handler("ship", "undo")) == [
        ("result", "own", "ship"),
        ("charge", "step", "charge"),
        ("reserve", "step", "reserve"),
    ]


def test_compensate_reads() -> None:
    """A compensate sees the error, what its step depends on, inputs and `ctx`."""
    assert _sources(_handler("charge", "compensate")) == [
        ("error", "error", ""),
        ("reserve", "step", "reserve"),
        ("order", "input", "order"),
        ("ctx", "ctx", ""),
    ]


def test_options() -> None:
    """Both take `retry=` and `timeout=`; without, they run once, for at most 60 s (rule S5)."""
    undo, compensate, plain = (
        _handler("charge", "undo"),
        _handler("charge", "compensate"),
        _handler("ship", "undo"),
    )
    assert (undo.retry, undo.timeout) == (Retry(attempts=3), 5.0)
    assert (compensate.retry, compensate.timeout) == (Retry(attempts=2), 120.0)
    assert (plain.retry, plain.timeout) == (Retry(attempts=1), 60.0)
    assert (undo.call.is_async, plain.call.is_async) == (True, False)


def test_named_result() -> None:
    """Where an input or step is called `result`, that is what `result` means."""

    class Odd(Reactor[None]):
        result: int

        @step
        async def go(self) -> None: ...

        @go.undo
        async def back(self, result: int) -> None: ...

    undo = plan_of(Odd).steps["go"].undo
    assert undo is not None
    assert _sources(undo) == [("result", "input", "result")]


def test_compensate_reading_its_own_step() -> None:
    """A step that failed has no result."""
    with refuses("Lost.void reads 'charge', the step that failed; take error instead."):

        class Lost(Reactor[None]):
            @step
            async def charge(self) -> int:
                return 1

            @charge.compensate
            async def void(self, charge: int) -> None: ...


def test_undo_reading_error() -> None:
    """An undo is given no error."""
    with refuses("Lost.refund reads 'error', which only a compensate is given."):

        class Lost(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            @charge.undo
            async def refund(self, error: StepError) -> None: ...


def test_reading_a_step_that_may_not_be_there() -> None:
    """A handler reads only steps that have certainly completed when it runs."""
    message = "it may read what 'charge' depends on, inputs and ctx."
    with refuses(f"Lost.refund reads 'ship', which 'charge' does not depend on; {message}"):

        class Lost(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            @charge.undo
            async def refund(self, ship: None) -> None: ...

            @step
            async def ship(self) -> None: ...


@pytest.mark.parametrize("kind", ["undo", "compensate"])
def test_wrong_options(kind: str) -> None:
    """A wrong option names the handler."""

    @step
    async def body(self: object) -> None: ...

    async def handler(self: object) -> None: ...

    with refuses("handler: timeout must be more than 0, not 0."):
        getattr(body, kind)(timeout=0)(handler)
    with refuses("handler: retry must be a Retry or a number of attempts, not 0."):
        getattr(body, kind)(retry=0)(handler)
