"""What type checkers make of declarations: each `assert_type` is an assertion, each ignore an expected error.

`test_typing.py` runs mypy and pyright on this file, so that an ignore that suppresses nothing is an error.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from typing import Annotated, Any, Generic, TypeVar, assert_type

from msgspec import Meta, Struct

from rewound import Context, Reactor, Redact, Retry, Skipped, Step, StepError, step, use, value
from rewound.runtime.declare import (
    ComposeDef,
    MapDef,
    SourceDef,
    StepBase,
    StepDef,
    SyncStepDef,
    compose,
    element,
    fan_out,
    map_each,
    source,
)
from rewound.runtime.outcomes import ElementOutcome
from rewound.runtime.results import Page, Results

T = TypeVar("T")
R = TypeVar("R")


class Receipt(Struct):
    """A result."""

    id: str


class Services(Struct):
    """What the application puts on the runtime."""

    url: str


class Charge(Step[Receipt]):
    """A class step."""

    amount: Annotated[int, Meta(gt=0)]
    currency: str = "EUR"

    async def run(self, ctx: Context[Services]) -> Receipt:
        """Charge."""
        return Receipt(ctx.state.url)

    async def undo(self, result: Receipt) -> None:
        """Refund."""


class Checkout(Reactor[Receipt], name="checkout", version=2, timeout=timedelta(hours=1), guards=[]):
    """A reactor with everything in it."""

    order: int
    email: Annotated[str, Meta(pattern=".+@.+")] = "a@b"
    token: Annotated[str, Redact]
    name: str = "an input may be called like an option"

    @step
    async def reserve(self) -> int:
        """Reserve."""
        return self.order

    @reserve.undo
    async def release(self, reserve: int) -> None:
        """Release."""

    @step(retry=Retry(attempts=3), timeout=10, after=reserve, cancel_on_failure=True, guards=[])
    async def charge(self, reserve: int, ctx: Context[Services]) -> Receipt:
        """Charge."""
        return Receipt(f"{reserve} {ctx.state.url}")

    @charge.compensate(retry=3, timeout=timedelta(minutes=1))
    async def void(self, error: StepError) -> str:
        """Void."""
        return error.message

    @charge.undo(timeout=5)
    def refund(self, charge: Receipt) -> bool:
        """Refund."""
        return bool(charge)

    @step(after=["reserve", charge])
    def label(self) -> str | Skipped[str]:
        """Print a label."""
        return Skipped("printed")

    again = use(Charge, bind={"amount": reserve, "currency": value("EUR")}, retry=2, after="label")
    returns = charge


class Child(Checkout):
    """A subclass that adds an input and overrides a step and a handler."""

    note: str

    @step
    async def reserve(self) -> int:
        """Reserve in another way."""
        return 2

    @Checkout.reserve.undo
    async def release(self, reserve: int) -> None:
        """Release in another way."""


class Import(Reactor[T], Generic[T]):
    """A generic reactor."""

    rows: list[T]

    @step
    async def first(self) -> T:
        """Take the first row."""
        return self.rows[0]


class ImportNames(Import[str]):
    """A named subclass of it."""


class Billing(Reactor[Results[Receipt]]):
    """A reactor with maps and a composed child."""

    month: str
    rate: int
    names: list[list[str]]

    @source
    async def rows(self, ctx: Context[Services]) -> AsyncIterator[int]:
        """Yield orders."""
        yield len(ctx.state.url)

    @source
    async def pages(self, ctx: Context, cursor: int | None) -> AsyncIterator[Page[int]]:
        """Yield pages of orders."""
        yield Page([1], cursor)

    class Charged(Reactor[Receipt]):
        """An inline child."""

        order: int
        rate: int = 1

        @step
        async def charge(self) -> Receipt:
            """Charge."""
            return Receipt(str(self.order))

    charges = fan_out(
        Charged, over=rows, bind={"order": element(), "rate": "rate"}, batch_size=5, atomic=False
    )
    more = map_each(Charged, over=pages, after=charges)
    again = fan_out(ImportNames, over="names", bind={"rows": element()}, batch_size=5, fail_fast=True)
    child = compose(Checkout, bind={"order": "rate", "token": value("t")}, after=[more, "again"])

    @charges.collect
    async def totals(self, charges: Results[Receipt]) -> int:
        """Count."""
        receipts = [receipt async for receipt in charges]
        assert_type(receipts, list[Receipt])
        return len(receipts)

    @more.collect(retry=2, timeout=timedelta(seconds=5))
    def count(self, more: Results[Receipt]) -> str:
        """Count in another way."""
        return str(len(more))

    @charges.undo_all
    async def refund_all(self, charges: Results[Receipt], ctx: Context) -> None:
        """Refund."""

    @more.undo_all(retry=3, timeout=5)
    def forget(self, result: Results[Receipt]) -> None:
        """Forget."""

    @step
    async def mail(self, child: Receipt) -> str:
        """Mail."""
        return child.id

    returns = charges


class Plain(Reactor):
    """A reactor that does not name its result."""

    order: int


class Nothing(Reactor[None]):
    """A reactor without a result."""


def result_of(reactor: Reactor[R]) -> R:
    """Stand for `Runtime.run`, whose result is the reactor's."""
    raise NotImplementedError


def result_of_step(of: StepBase[..., R]) -> R:
    """Stand for `Run.step`, whose result is the step's."""
    raise NotImplementedError


def results(checkout: Checkout, child: Child, plain: Plain, nothing: Nothing, names: ImportNames) -> None:
    """A run's result is of the reactor's type."""
    assert_type(result_of(checkout), Receipt)
    assert_type(result_of(child), Receipt)
    assert_type(result_of(plain), Any)
    assert_type(result_of(nothing), None)
    assert_type(result_of(names), str)
    untyped: Reactor = checkout
    wider: Reactor[object] = checkout
    narrower: Reactor[str] = checkout  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    _ = (untyped, wider, narrower)


def step_objects() -> None:
    """A step object carries its parameters and its result."""
    assert_type(Checkout.reserve, StepDef[[], int])
    assert_type(Checkout.again, StepDef[..., Receipt])
    assert_type(result_of_step(Checkout.reserve), int)
    assert_type(result_of_step(Checkout.charge), Receipt)
    assert_type(result_of_step(Checkout.label), str | Skipped[str])
    label: SyncStepDef[[], str | Skipped[str]] = Checkout.label
    assert_type(label.name, str)


def inputs() -> None:
    """Inputs are given by keyword, and are of the annotated types."""
    Checkout(order=1, token="-", name="n")  # noqa: S106
    Child(order=1, token="-", note="n")  # noqa: S106
    Charge(amount=1)
    Checkout(1, token="-")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # noqa: S106
    Checkout(order=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Checkout(order="1", token="-")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # noqa: S106
    Checkout(order=1, token="-", odd=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # noqa: S106
    Charge(amount="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def frozen(checkout: Checkout, charge: Charge) -> None:
    """Neither inputs nor anything else can be set."""
    checkout.order = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    checkout.tmp = 2  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    charge.amount = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


async def by_hand(checkout: Checkout, child: Child, services: Services) -> None:
    """A step, its handlers and a class step are callable by hand, with their own parameters."""
    assert_type(await checkout.reserve(), int)
    assert_type(await checkout.charge(1, ctx=Context(state=services)), Receipt)
    assert_type(checkout.label(), str | Skipped[str])
    assert_type(await checkout.release(reserve=1), None)
    assert_type(await checkout.void(StepError("E", "m", "charge")), str)
    assert_type(checkout.refund(Receipt("r")), bool)
    assert_type(await checkout.again(amount=3), Receipt)
    assert_type(await child.reserve(), int)
    bound: Callable[[], Coroutine[Any, Any, int]] = checkout.reserve
    assert_type(await bound(), int)
    await checkout.charge()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await checkout.charge("1", Context(state=services))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    checkout.refund("r")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def maps(billing: Billing, results: Results[Receipt]) -> None:
    """A map is of its child's result; what it gives is read lazily, and typed."""
    assert_type(Billing.charges, MapDef[Receipt])
    assert_type(Billing.more, MapDef[Receipt])
    assert_type(Billing.again, MapDef[str])
    assert_type(Billing.child, ComposeDef[Receipt])
    assert_type(billing.charges, MapDef[Receipt])
    assert_type(result_of(billing), Results[Receipt])
    assert_type(result_of_step(Billing.charges), Results[Receipt])
    assert_type(result_of_step(Billing.child), Receipt)
    assert_type(result_of_step(Billing.totals), int)
    assert_type(await billing.totals(results), int)
    assert_type(billing.count(more=results), str)
    assert_type(await billing.refund_all(results, Context()), None)
    rows: SourceDef[..., int] = Billing.rows
    assert_type([row async for row in billing.rows(Context(state=Services("u")))], list[int])
    assert_type([page async for page in billing.pages(Context(), cursor=None)], list[Page[int]])
    assert_type(len(results), int)
    assert_type(await results.get(-1), Receipt)
    assert_type(await results.outcome(0), ElementOutcome[Receipt])
    assert_type([each async for each in results.successes()], list[ElementOutcome[Receipt]])
    assert_type([each async for each in results.failures()], list[ElementOutcome[Receipt]])
    assert_type([each async for each in results.outcomes()], list[ElementOutcome[Receipt]])
    assert_type(await results.all(), list[Receipt])
    wider: Results[object] = results
    _ = (rows, wider)
    billing.charges()  # type: ignore[operator]  # pyright: ignore[reportCallIssue]
    fan_out(int, over="orders")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    fan_out(Checkout, over=[1])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    map_each(Checkout, over="orders", batch_size=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    compose(Checkout, retry=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def contexts(typed: Context[Services], plain: Context) -> None:
    """The state is of the type that the context names, else `Any`."""
    assert_type(typed.state, Services)
    assert_type(plain.state, Any)
    assert_type(Context(state=3).state, int)
    assert_type(Context().run_id, str)


def options() -> None:
    """Options are checked."""
    Retry(backoff="slow")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    step(retry="3")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    step(after=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    use(int)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Checkout.reserve.undo(retries=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


class Odd(Reactor[None], versoin=2):  # pyright: ignore[reportGeneralTypeIssues]
    """Class keywords are checked, too (and this file is never run)."""
