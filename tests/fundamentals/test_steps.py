"""What steps can say and do on the way forward."""

import threading

import anyio
import pytest

from rewound import (
    Context,
    Failed,
    Fatal,
    Halt,
    Halted,
    Reactor,
    Retry,
    RunHalted,
    Runtime,
    Skipped,
    Step,
    step,
    use,
)

pytestmark = pytest.mark.anyio


class Sum(Reactor[int]):
    """A parameter named like a step is that step's result."""

    one: int

    @step
    async def two(self) -> int:
        """Stand for itself."""
        return 2

    @step
    async def total(self, one: int, two: int) -> int:
        """Add an input and a result."""
        return one + two


async def test_results_flow_by_name(runtime: Runtime) -> None:
    """A step takes inputs and the results of other steps as parameters."""
    assert await runtime.run(Sum(one=1)) == 3


class Meet(Reactor[None]):
    """Two steps that wait for each other."""

    @step
    async def left(self, ctx: Context) -> None:
        """Come and wait."""
        await meet(ctx.state["left"], ctx.state["right"])

    @step
    async def right(self, ctx: Context) -> None:
        """Come and wait."""
        await meet(ctx.state["right"], ctx.state["left"])


async def meet(mine: anyio.Event, theirs: anyio.Event) -> None:
    """Say that one is there, and wait for the other."""
    mine.set()
    await theirs.wait()


async def test_independent_steps_run_at_the_same_time(url: str) -> None:
    """Steps that do not need each other run concurrently."""
    async with Runtime(url, state={"left": anyio.Event(), "right": anyio.Event()}) as runtime:
        await runtime.run(Meet())


class InOrder(Reactor[None]):
    """Steps in an order that no result asks for."""

    @step
    async def first(self, ctx: Context) -> None:
        """Come first."""
        ctx.state["log"].append("first")

    @step(after=first)
    async def second(self, ctx: Context) -> None:
        """Come second."""
        ctx.state["log"].append("second")


async def test_after(runtime: Runtime, log: list[str]) -> None:
    """`after=` waits for a step without taking its result."""
    await runtime.run(InOrder())
    assert log == ["first", "second"]


class Flaky(Reactor[str]):
    """A step that succeeds at its third attempt."""

    @step(retry=Retry(attempts=3, delay=0))
    async def call(self, ctx: Context) -> str:
        """Fail twice."""
        ctx.state["log"].append(str(ctx.attempt))
        if ctx.attempt < 3:
            raise ConnectionError
        return "answer"


async def test_retry(runtime: Runtime, log: list[str]) -> None:
    """A step that raises is tried again, as often as its `Retry` says."""
    assert await runtime.run(Flaky()) == "answer"
    assert log == ["1", "2", "3"]


class Hopeless(Reactor[str]):
    """A step that knows that no retry will help."""

    @step(retry=5)
    async def call(self, ctx: Context) -> str:
        """Fail for good."""
        ctx.state["log"].append(str(ctx.attempt))
        raise Fatal("the account is closed")


async def test_fatal(runtime: Runtime, log: list[str]) -> None:
    """`Fatal` fails a step without any further attempt."""
    outcome = await (await runtime.spawn(Hopeless())).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "Fatal"
    assert log == ["1"]


class Slow(Reactor[str]):
    """A step that takes longer than it may."""

    @step(timeout=0.01)
    async def call(self) -> str:
        """Never come back."""
        await anyio.sleep_forever()
        return "never"


async def test_timeout(runtime: Runtime) -> None:
    """A step that takes longer than its `timeout` fails."""
    outcome = await (await runtime.spawn(Slow())).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "TimeoutError"


class Stop(Reactor[str]):
    """A run that need not go on."""

    @step
    async def reserve(self, ctx: Context) -> None:
        """Do something that is meant to stay."""
        ctx.state["log"].append("reserve")

    @reserve.undo
    async def release(self, ctx: Context) -> None:
        """Take it back."""
        ctx.state["log"].append("release")

    @step(after=reserve)
    async def check(self) -> None:
        """Find that there is nothing to do."""
        raise Halt("nothing to do")

    @step(after=check)
    async def ship(self, ctx: Context) -> str:
        """Not be reached."""
        ctx.state["log"].append("ship")
        return "shipped"


async def test_halt(runtime: Runtime, log: list[str]) -> None:
    """`Halt` ends a run cleanly: no further step, nothing undone."""
    run = await runtime.spawn(Stop())
    with pytest.raises(RunHalted, match="nothing to do"):
        await run.result()
    assert await run.outcome() == Halted("nothing to do", "check")
    assert log == ["reserve"]


class Cached(Reactor[int]):
    """A step that has nothing to do, and later fails."""

    @step
    async def fetch(self) -> int | Skipped[int]:
        """Find the value in a cache."""
        return Skipped(7)

    @fetch.undo
    async def forget(self, ctx: Context) -> None:
        """Be wrong to call."""
        ctx.state["log"].append("forget")

    @step
    async def use_it(self, fetch: int, ctx: Context) -> int:
        """Use the value, then fail."""
        ctx.state["log"].append(f"got {fetch}")
        raise ValueError


async def test_skipped(runtime: Runtime, log: list[str]) -> None:
    """The value of a skipped step flows on; such a step is never undone."""
    await (await runtime.spawn(Cached())).outcome()
    assert log == ["got 7"]


class Plain(Reactor[str]):
    """A step that is no coroutine."""

    @step
    def compute(self) -> str:
        """Tell which thread it runs in."""
        return threading.current_thread().name


async def test_plain_function_runs_in_a_thread(runtime: Runtime) -> None:
    """A `def` step does not block the event loop: it runs in a worker thread."""
    assert await runtime.run(Plain()) != threading.current_thread().name


class Charge(Step[str]):
    """A reusable step with inputs of its own."""

    amount: int

    async def run(self) -> str:
        """Charge."""
        return f"charged {self.amount}"


class Order(Reactor[str]):
    """A reactor that uses it."""

    price: int

    charge = use(Charge, bind={"amount": "price"})


async def test_class_step(runtime: Runtime) -> None:
    """A step written as a class is used in any reactor; `bind=` says where its inputs come from."""
    assert await runtime.run(Order(price=5)) == "charged 5"


class Draft(Reactor[str]):
    """A reactor to build upon."""

    @step
    async def title(self) -> str:
        """Give a title."""
        return "draft"

    @step
    async def page(self, title: str) -> str:
        """Write the page."""
        return f"<h1>{title}</h1>"


class Final(Draft):
    """The same, with another title."""

    @step
    async def title(self) -> str:
        """Give another title."""
        return "final"


async def test_inheritance(runtime: Runtime) -> None:
    """A subclass inherits steps and overrides the ones it declares."""
    assert await runtime.run(Draft()) == "<h1>draft</h1>"
    assert await runtime.run(Final()) == "<h1>final</h1>"


class Keys(Reactor[list[str]]):
    """A step that shows its idempotency key."""

    @step(retry=Retry(attempts=2, delay=0))
    async def call(self, ctx: Context) -> list[str]:
        """Fail once."""
        ctx.state["log"].append(ctx.idempotency_key)
        if ctx.attempt == 1:
            raise ConnectionError
        return [ctx.run_id, ctx.step]


async def test_idempotency_key(runtime: Runtime, log: list[str]) -> None:
    """`ctx.idempotency_key` is the same for every attempt, and another one for every run."""
    for _ in range(2):
        await runtime.run(Keys())
    first, again, other, other_again = log
    assert first == again != other == other_again


async def test_step_is_a_plain_method_in_a_unit_test() -> None:
    """A step can be called by hand, without any runtime."""
    assert await Sum(one=1).total(one=1, two=5) == 6


async def test_one_steps_result_before_the_run_has_ended(url: str) -> None:
    """`run.step` returns a step's result as soon as it is there."""
    gate = anyio.Event()
    async with Runtime(url, state={"gate": gate}) as runtime:
        run = await runtime.spawn(Gated())
        assert await run.step(Gated.quick) == "quick"
        assert await run.status() == "running"
        gate.set()
        assert await run.result() == "quick and slow"


class Gated(Reactor[str]):
    """A quick step and one that waits for the gate."""

    @step
    async def quick(self) -> str:
        """Come at once."""
        return "quick"

    @step
    async def slow(self, quick: str, ctx: Context) -> str:
        """Wait for the gate."""
        await ctx.state["gate"].wait()
        return f"{quick} and slow"
