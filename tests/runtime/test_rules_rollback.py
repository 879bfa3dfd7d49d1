"""The rules of docs/rules.md sections 1 and 2 about handlers, from a user's side."""

from datetime import timedelta

import pytest

from rewound import (
    Halt,
    Reactor,
    Retry,
    RollbackFailure,
    step,
)
from tests.runtime.nodes import Net, Stage
from tests.runtime.plays import Chain, Stagehand, act

pytestmark = pytest.mark.anyio


async def test_every_rollback_failure_is_listed(net: Net, stage: Stage) -> None:
    """S5: a failing undo or compensate stops no other; the outcome lists them all (lesson 17)."""
    runtime = await net.runtime(Chain)
    stage.errors |= {
        "b": RuntimeError("b"),
        "compensate b": ValueError("cb"),
        "undo a": KeyError("ua"),
    }
    outcome = await (await runtime.spawn(Chain())).outcome()
    assert outcome.rollback_failures == [
        RollbackFailure("b", "compensate", "ValueError", "cb"),
        RollbackFailure("a", "undo", "KeyError", "'ua'"),
    ]


class Patient(Reactor[None]):
    """An undo with attempts and a timeout of its own."""

    @step
    async def a(self) -> None:
        """Succeed."""

    @a.undo(retry=Retry(attempts=2, delay=1, jitter=0), timeout=timedelta(seconds=3))
    async def undo_a(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"undo a, attempt {ctx.attempt}")

    @step(after=a)
    async def fail(self) -> None:
        """Fail."""
        raise RuntimeError


async def test_handlers_have_attempts_and_a_timeout(net: Net, stage: Stage) -> None:
    """S5: an undo is tried as often as its own `Retry` says, each attempt under its timeout."""
    runtime = await net.runtime(Patient)
    stage.close("undo a, attempt 1", "undo a, attempt 2")
    run = await runtime.spawn(Patient())
    await net.advance(3.5)
    assert stage.log == ["undo a, attempt 1"]
    await net.advance(5)
    outcome = await run.outcome()
    assert outcome.rollback_failures == [
        RollbackFailure("a", "undo", "TimeoutError", "took longer than its timeout of 3 s")
    ]
    assert stage.log == ["undo a, attempt 1", "undo a, attempt 2"]


async def test_a_handler_that_halts_is_a_rollback_failure(net: Net, stage: Stage) -> None:
    """S5, S6: `Halt` means nothing in a rollback."""
    runtime = await net.runtime(Chain)
    stage.errors |= {"b": RuntimeError("b"), "undo a": Halt("stop")}
    outcome = await (await runtime.spawn(Chain())).outcome()
    assert [each.error for each in outcome.rollback_failures] == ["Halt"]
