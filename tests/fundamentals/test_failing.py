"""What happens when something goes wrong."""

from typing import Annotated

import pytest
from msgspec import Meta

from rewound import (
    Context,
    Failed,
    InputError,
    Reactor,
    Redact,
    RollbackFailure,
    RunFailed,
    Runtime,
    StepError,
    step,
)

pytestmark = pytest.mark.anyio


class Checkout(Reactor[str]):
    """The saga of the tutorial: reserve, charge, ship; `fail` names the step that fails."""

    fail: str = ""

    @step
    async def reserve(self, ctx: Context) -> str:
        """Reserve stock."""
        return self.act("reserve", ctx)

    @reserve.undo
    async def release(self, reserve: str, ctx: Context) -> None:
        """Release the stock."""
        self.act("release", ctx)

    @step
    async def charge(self, reserve: str, ctx: Context) -> str:
        """Charge the card."""
        return self.act("charge", ctx)

    @charge.undo
    async def refund(self, charge: str, ctx: Context) -> None:
        """Refund."""
        self.act("refund", ctx)

    @charge.compensate
    async def void(self, error: StepError, ctx: Context) -> None:
        """Void what may have been charged."""
        self.act(f"void after {error.message}", ctx)

    @step
    async def ship(self, charge: str, ctx: Context) -> str:
        """Ship."""
        return self.act("ship", ctx)

    def act(self, name: str, ctx: Context) -> str:
        """Write down what is done, and fail where the test wants it."""
        ctx.state["log"].append(name)
        if name in self.fail.split(","):
            raise RuntimeError(f"{name} is down")
        return name


async def test_undo(runtime: Runtime, log: list[str]) -> None:
    """When a step fails, the steps before it are undone, newest first."""
    run = await runtime.spawn(Checkout(fail="ship"))
    await run.outcome()
    assert log == ["reserve", "charge", "ship", "refund", "release"]


async def test_compensate(runtime: Runtime, log: list[str]) -> None:
    """The step that failed cleans up after itself first: its `compensate` is told why."""
    run = await runtime.spawn(Checkout(fail="charge"))
    await run.outcome()
    assert log == ["reserve", "charge", "void after charge is down", "release"]


async def test_failure_tells_what_happened(runtime: Runtime) -> None:
    """`result` raises `RunFailed`; its failure names step, error and inputs."""
    run = await runtime.spawn(Checkout(fail="charge"))
    with pytest.raises(RunFailed, match=r"Checkout.charge: RuntimeError: charge is down") as raised:
        await run.result()
    failure = raised.value.failure
    assert (failure.step, failure.error, failure.attempts) == ("charge", "RuntimeError", 1)
    assert failure.inputs == {"fail": "charge"}
    assert "in charge" in failure.traceback


async def test_rollback_goes_on_over_failures(runtime: Runtime, log: list[str]) -> None:
    """An undo that fails is listed in the outcome, and stops no other."""
    run = await runtime.spawn(Checkout(fail="ship,refund"))
    outcome = await run.outcome()
    assert outcome.rollback_failures == [RollbackFailure("charge", "undo", "RuntimeError", "refund is down")]
    assert log[-2:] == ["refund", "release"]


class Account(Reactor[str]):
    """Inputs with constraints, one of them secret."""

    email: Annotated[str, Meta(pattern=".+@.+")]
    age: Annotated[int, Meta(ge=18)]
    password: Annotated[str, Redact] = ""

    @step
    async def create(self) -> str:
        """Fail."""
        raise RuntimeError("the database is down")


async def test_input_error(runtime: Runtime) -> None:
    """Inputs are checked before anything is stored; every bad field is named."""
    with pytest.raises(InputError) as raised:
        await runtime.spawn(Account, {"email": "nobody", "age": 17})
    assert set(raised.value.fields) == {"email", "age"}
    assert [each async for each in runtime.runs()] == []


async def test_redaction(runtime: Runtime) -> None:
    """An input marked `Redact` is masked wherever inputs are shown."""
    run = await runtime.spawn(Account(email="a@b", age=30, password="1234"))  # noqa: S106
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.inputs == {"email": "a@b", "age": 30, "password": "[redacted]"}
