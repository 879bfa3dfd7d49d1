"""What type checkers make of running: each `assert_type` is an assertion, each ignore an expected error.

`test_typing.py` runs mypy and pyright on this file, so that an ignore that suppresses nothing is an error.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, TypeVar, assert_never, assert_type

from msgspec import Struct

from rewound import (
    Cancelled,
    Completed,
    Failed,
    Halted,
    Outcome,
    Reactor,
    RollbackFailure,
    Run,
    RunEvent,
    RunSummary,
    Runtime,
    Skipped,
    Step,
    StepError,
    step,
    use,
)
from rewound.storage import Check, Storage

T = TypeVar("T")


class Receipt(Struct):
    """A result."""

    id: str


class Notify(Step[bytes]):
    """A class step."""

    text: str

    async def run(self) -> bytes:
        """Notify."""
        return self.text.encode()


class Checkout(Reactor[Receipt]):
    """A reactor whose result is typed, with steps of each kind."""

    order: int

    @step
    async def reserve(self) -> int:
        """Reserve."""
        return self.order

    @step
    async def insure(self, reserve: int) -> str | Skipped[str]:
        """Insure, or say that there is no need."""
        return Skipped(f"{reserve}")

    @step
    def label(self, reserve: int) -> str | Skipped[str]:
        """Print a label, in a worker thread."""
        return Skipped(f"{reserve}")

    @step
    def weigh(self) -> float | None:
        """Weigh, in a worker thread."""
        return None

    @step
    async def tell(self) -> None:
        """Tell."""

    @step(after=[reserve, insure])
    async def charge(self) -> Receipt:
        """Charge."""
        return Receipt("r")

    notify = use(Notify, bind={"text": insure})
    returns = charge


class Child(Checkout):
    """A subclass that adds an input."""

    note: str


class Plain(Reactor):
    """A reactor that does not name its result."""

    order: int

    @step
    async def only(self) -> int:
        """Do it."""
        return self.order


class Nothing(Reactor[None]):
    """A reactor without a result."""

    @step
    async def only(self) -> int:
        """Do it."""
        return 1


async def spawning(runtime: Runtime) -> None:
    """A handle has the type of its reactor's result, given as an instance or as a class with inputs."""
    assert_type(await runtime.spawn(Checkout(order=1)), Run[Receipt])
    assert_type(await runtime.spawn(Checkout(order=1), key="order-1"), Run[Receipt])
    assert_type(await runtime.spawn(Checkout, {"order": 1}), Run[Receipt])
    assert_type(await runtime.spawn(Checkout, {"order": 1}, key="order-1"), Run[Receipt])
    assert_type(await runtime.spawn(Child(order=1, note="n")), Run[Receipt])
    assert_type(await runtime.spawn(Plain(order=1)), Run[Any])
    assert_type(await runtime.spawn(Nothing), Run[None])


async def running(runtime: Runtime) -> None:
    """`run` gives the result itself."""
    assert_type(await runtime.run(Checkout(order=1)), Receipt)
    assert_type(await runtime.run(Checkout, {"order": 1}, key="order-1"), Receipt)
    assert_type(await runtime.run(Plain(order=1)), Any)
    assert_type(await runtime.run(Nothing()), None)


async def wrong_calls(runtime: Runtime) -> None:
    """Inputs, keys and what is no reactor are checked."""
    await runtime.spawn(Checkout(order="1"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await runtime.spawn(Checkout())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await runtime.spawn(Receipt("r"))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    await runtime.spawn(Checkout, [("order", 1)])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    await runtime.spawn(Checkout(order=1), {"order": 1})  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    await runtime.spawn(Checkout(order=1), "order-1")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    await runtime.run(Checkout(order=1), key=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def getting(runtime: Runtime) -> None:
    """A stored run is as typed as what it is asked for with."""
    assert_type(await runtime.get("r", Checkout), Run[Receipt])
    assert_type(await runtime.get("r"), Run[Any])
    await runtime.get("r", Receipt)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    await runtime.get("r", Checkout(order=1))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def results(run: Run[Receipt], untyped: Run[Any]) -> None:
    """A result, and the outcome around it, are of the handle's type."""
    assert_type(await run.result(), Receipt)
    assert_type(await run.result(timeout=5), Receipt)
    assert_type(await run.result(timedelta(seconds=5)), Receipt)
    assert_type(await run.outcome(), Completed[Receipt] | Failed | Halted | Cancelled)
    assert_type(await untyped.result(), Any)
    assert_type((await run.outcome()).rollback_failures, list[RollbackFailure])
    await run.result(timeout="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def told(outcome: Outcome[Receipt]) -> str:
    """A match over the four outcomes is exhaustive, or a return would be missing; each arm is typed."""
    match outcome:
        case Completed(value):
            return assert_type(value, Receipt).id
        case Failed() as failed:
            assert_type(failed.others, list[StepError])
            return assert_type(failed.message, str)
        case Halted(reason, halted_by):
            return assert_type(reason, str) + assert_type(halted_by, str)
        case Cancelled(undone=undone):
            return str(assert_type(undone, bool))


def told_by_half(outcome: Outcome[Receipt]) -> str:
    """A match that leaves an outcome out is not."""
    match outcome:
        case Completed(value):
            return value.id
        case Failed() | Halted():
            return ""
        case rest:
            assert_never(rest)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def steps(run: Run[Receipt]) -> None:
    """A step's result is what its body is annotated with; of `T | Skipped[T]` it is the `T`."""
    assert_type(await run.step(Checkout.reserve), int)
    assert_type(await run.step(Checkout.reserve, timeout=5), int)
    assert_type(await run.step(Checkout.insure), str)
    assert_type(await run.step(Checkout.label), str)
    assert_type(await run.step(Checkout.weigh), float | None)
    assert_type(await run.step(Checkout.tell), None)
    assert_type(await run.step(Checkout.notify), bytes)
    assert_type(await run.step(Child.charge), Receipt)
    await run.step("reserve")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await run.step(Checkout)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await run.step(Checkout(order=1).reserve)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def seeing(runtime: Runtime, run: Run[Receipt]) -> None:
    """Events and summaries are typed; both are iterated over, not awaited."""
    assert_type(run.events(), AsyncIterator[RunEvent])
    async for event in run.events():
        assert_type(event.step, str | None)
    assert_type(runtime.runs(), AsyncIterator[RunSummary])
    async for summary in runtime.runs(status="failed", reactor=Checkout):
        assert_type(summary.key, str | None)
    runtime.runs(reactor="Checkout")
    runtime.runs(reactor=Receipt)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    runtime.runs(reactor=Checkout(order=1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(await runtime.history(run.id), tuple[RunSummary, list[RunEvent]])
    assert_type(await run.status(), str)
    assert_type(await runtime.doctor(), list[Check])


async def verbs(runtime: Runtime, run: Run[Receipt]) -> None:
    """Verbs take an id, or stand on the handle, and return nothing."""
    assert_type(await runtime.undo(run.id, reason="r"), None)
    assert_type(await runtime.cancel(run.id), None)
    assert_type(await runtime.retry(run.id), None)
    assert_type(await runtime.acknowledge(run.id), None)
    assert_type(await run.undo("r"), None)
    assert_type(await run.cancel(), None)
    assert_type(await run.retry(), None)
    await runtime.undo(run)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def variance(run: Run[Child], wider: Run[Checkout]) -> None:
    """A handle is covariant in its result, as a result is only ever read."""
    also_wider: Run[Checkout] = run
    narrower: Run[Child] = wider  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _ = (also_wider, narrower)


async def generic(runtime: Runtime, reactor: Reactor[T], kind: type[Reactor[T]]) -> tuple[T, Run[T]]:
    """A function that runs any reactor keeps its type."""
    return await runtime.run(reactor), await runtime.spawn(kind, {})


def runtimes(storage: Storage, state: AbstractAsyncContextManager[Mapping[str, Any]]) -> None:
    """A runtime takes a URL or a storage, durations of both kinds, and state or a way to open it."""
    Runtime()
    Runtime("sqlite:///app.db", reactors=[Checkout, Plain], lease=2, retention=timedelta(days=1))
    Runtime(storage, state={"url": "u"})
    Runtime(state=lambda: state)
    Runtime(reactors=[Receipt])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    Runtime(reactors=[Checkout(order=1)])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    Runtime(lease="2s")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Runtime(state=state)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Runtime(leese=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def entering(runtime: Runtime) -> None:
    """Entered, a runtime is itself."""
    async with runtime as entered:
        assert_type(entered, Runtime)
