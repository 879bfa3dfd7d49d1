"""The rules of docs/rules.md section 2, from a user's side."""

import pytest

from rewound import (
    Failed,
    Halt,
    Halted,
    Reactor,
    Retry,
    RunFailed,
    Skipped,
    StepError,
    step,
)
from tests.runtime.nodes import Net, Stage
from tests.runtime.plays import Fork, Solo, Stagehand, act

pytestmark = pytest.mark.anyio


class Stubborn(Reactor[str]):
    """A step with three attempts, and a compensate."""

    @step
    async def before(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "before")

    @before.undo
    async def undo_before(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo before")

    @step(retry=Retry(attempts=3, delay=1, jitter=0), after=before)
    async def a(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "a")

    @a.compensate
    async def compensate_a(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate a")


async def test_retries_then_compensate_then_rollback(net: Net, stage: Stage) -> None:
    """S1: attempts come first, compensate after the last one, then the rollback of earlier steps."""
    runtime = await net.runtime(Stubborn)
    stage.errors["a"] = RuntimeError("no")
    run = await runtime.spawn(Stubborn())
    await net.advance(5)
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.attempts == 3
    assert stage.log == ["before", "a", "a", "a", "compensate a", "undo before"]


class Bad(Reactor[int]):
    """A step whose argument cannot be resolved."""

    @step
    async def before(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "before")

    @before.undo
    async def undo_before(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo before")

    @step
    async def number(self, before: str) -> int:
        """Give a number that is none."""
        return before  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    @number.compensate
    async def compensate_number(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate number")


async def test_wrong_result_fails_the_step_as_one_that_started(net: Net, stage: Stage) -> None:
    """S11, A5: a result that does not match its annotation fails the step, which is compensated."""
    runtime = await net.runtime(Bad)
    outcome = await (await runtime.spawn(Bad())).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.step, outcome.error) == ("number", "OutputError")
    assert stage.log == ["before", "compensate number", "undo before"]


class Big(Reactor[bytes]):
    """A step whose result is too large."""

    @step
    async def make(self) -> bytes:
        """Make a large value."""
        return bytes(2000)

    @make.compensate
    async def compensate_make(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate make")


async def test_result_that_cannot_be_stored(net: Net, stage: Stage) -> None:
    """S11: a result above `max_payload` fails its step, by name and size, and is compensated."""
    runtime = await net.runtime(Big, max_payload=1000)
    with pytest.raises(RunFailed, match=r"Big\.make.*PayloadTooLarge.*2003 bytes.*max_payload=1000"):
        await runtime.run(Big())
    assert stage.log == ["compensate make"]


async def test_siblings_settle_before_the_rollback(net: Net, stage: Stage) -> None:
    """S3: a failing step waits for its siblings; one that succeeds meanwhile is undone like any other."""
    runtime = await net.runtime(Fork)
    stage.close("left", "right")
    stage.errors["middle"] = RuntimeError("no")
    run = await runtime.spawn(Fork())
    await net.settle()
    assert sorted(stage.log) == ["a", "left", "middle", "right"]
    stage.open("right")
    await net.settle()
    stage.open("left")
    await run.outcome()
    assert stage.log[4:] == ["compensate middle", "undo left", "undo right", "undo a"]


async def test_order_of_rollback_with_two_failures(net: Net, stage: Stage) -> None:
    """S4: compensates in the order of the failures, then undos in reverse order of completion."""
    runtime = await net.runtime(Fork)
    stage.close("left", "middle")
    stage.errors |= {"left": RuntimeError("first"), "middle": ValueError("second")}
    run = await runtime.spawn(Fork())
    await net.settle()
    stage.open("middle")
    await net.settle()
    stage.open("left")
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.step, [each.step for each in outcome.others]) == ("middle", ["left"])
    assert stage.log[4:] == ["compensate middle", "compensate left", "undo right", "undo a"]


class Hasty(Reactor[None]):
    """A step that is cancelled when its sibling fails."""

    @step(cancel_on_failure=True)
    async def slow(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "slow")

    @slow.compensate
    async def compensate_slow(self, error: StepError, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"compensate slow after {error.type}")

    @step
    async def fail(self) -> None:
        """Fail."""
        raise RuntimeError


async def test_cancel_on_failure(net: Net, stage: Stage) -> None:
    """S3: a sibling declared `cancel_on_failure` is cancelled and compensated instead of waited for."""
    runtime = await net.runtime(Hasty)
    stage.close("slow")
    await (await runtime.spawn(Hasty())).outcome()
    assert stage.log == ["slow", "compensate slow after Cancelled"]


async def test_halt_lets_siblings_settle(net: Net, stage: Stage) -> None:
    """S6: a halt undoes nothing, and waits for the siblings in flight."""
    runtime = await net.runtime(Fork)
    stage.close("left")
    stage.errors["middle"] = Halt("enough")
    run = await runtime.spawn(Fork())
    await net.settle()
    assert await net.status(run.id) == "running"
    stage.open("left")
    assert await run.outcome() == Halted("enough", "middle")
    assert sorted(stage.log) == ["a", "left", "middle", "right"]


async def test_a_sibling_that_fails_turns_a_halt_into_a_failure(net: Net, stage: Stage) -> None:
    """S6: a halt with a failing sibling is a failure, and is rolled back."""
    runtime = await net.runtime(Fork)
    stage.close("left")
    stage.errors |= {"middle": Halt("enough"), "left": RuntimeError("no")}
    run = await runtime.spawn(Fork())
    await net.settle()
    stage.open("left")
    assert isinstance(await run.outcome(), Failed)
    assert stage.log[-3:] == ["compensate left", "undo right", "undo a"]


class Lazy(Reactor[None]):
    """A step that has nothing to do, and one that fails."""

    @step
    async def a(self) -> str | Skipped[str]:
        """Skip."""
        return Skipped("nothing")

    @a.undo
    async def undo_a(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "undo a")

    @step
    async def b(self, a: str, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"b after {a}")
        raise RuntimeError


async def test_skipped_is_never_undone(net: Net, stage: Stage) -> None:
    """S7: the value of a skipped step flows on, and the step is not undone."""
    runtime = await net.runtime(Lazy)
    await (await runtime.spawn(Lazy())).outcome()
    assert stage.log == ["b after nothing"]


class Timed(Solo, timeout=5):
    """A run that may take five seconds."""


async def test_run_timeout(net: Net, stage: Stage) -> None:
    """S12: a run's timeout cuts what is in flight, and the run fails and is rolled back."""
    runtime = await net.runtime(Timed)
    stage.close("a")
    run = await runtime.spawn(Timed())
    await net.advance(6)
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step) == ("TimeoutError", "")
    assert stage.log == ["a", "compensate a"]


async def test_run_timeout_never_stops_a_rollback(net: Net, stage: Stage) -> None:
    """S12: what is taken back may take its time."""
    runtime = await net.runtime(Timed)
    stage.close("compensate a")
    stage.errors["a"] = RuntimeError("no")
    run = await runtime.spawn(Timed())
    await net.advance(20)
    stage.open("compensate a")
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.rollback_failures) == ("RuntimeError", [])
