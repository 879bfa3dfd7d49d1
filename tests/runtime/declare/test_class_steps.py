"""`Step` classes, `use` and `bind=`."""

# pyright: reportUnusedClass=false, reportIncompatibleVariableOverride=false
# the classes are wrong on purpose; what type checkers say of them is not the point here

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Generic, TypeVar

import pytest
from msgspec import Meta, Struct

from rewound import Context, InputError, Reactor, Redact, Skipped, Step, StepError, plan_of, step, use, value
from tests.runtime.declare.refusals import refuses

T = TypeVar("T")


class _Receipt(Struct):
    id: str


class _Charge(Step[_Receipt]):
    """Charge a card."""

    amount: Annotated[int, Meta(gt=0)]
    card: Annotated[str, Redact]
    currency: str = "EUR"

    async def run(self) -> _Receipt:
        return _Receipt(f"{self.amount}{self.currency}")

    async def undo(self, result: _Receipt, ctx: Context[Any]) -> None: ...

    def compensate(self, error: StepError) -> None: ...


class _Count(Step[int]):
    def run(self, ctx: Context[Any]) -> int:
        return ctx.attempt


class _Checkout(Reactor[_Receipt]):
    price: int
    card: str

    @step
    async def currency(self) -> str:
        return "USD"

    charge = use(_Charge, bind={"amount": "price"}, retry=2, timeout=3, cancel_on_failure=True)
    count = use(_Count, after=charge)
    returns = charge


def test_plan() -> None:
    """Inputs are bound, or looked up by their own name; the class's undo and compensate are the step's."""
    charge = plan_of(_Checkout).steps["charge"]
    assert charge.call.made is not None
    bound = [(arg.name, arg.source, arg.key) for arg in charge.call.made.args]
    assert bound == [
        ("amount", "input", "price"),
        ("card", "input", "card"),
        ("currency", "step", "currency"),
    ]
    assert (charge.needs, charge.returns, charge.timeout, charge.guards) == (
        ("currency",),
        _Receipt,
        3,
        (),
    )
    assert (charge.retry.attempts, charge.cancel_on_failure) == (2, True)
    assert charge.undo is not None
    assert charge.compensate is not None
    assert [arg.source for arg in charge.undo.call.args] == ["own", "ctx"]
    assert [arg.source for arg in charge.compensate.call.args] == ["error"]
    assert (charge.call.is_async, charge.undo.call.is_async, charge.compensate.call.is_async) == (
        True,
        True,
        False,
    )


def test_defaults_and_constants() -> None:
    """An input that nothing fills has its default; `value(x)` is a constant; a step object is its result."""

    class Buy(Reactor[_Receipt]):
        @step
        async def price(self) -> int:
            return 3

        charge = use(_Charge, bind={"amount": price, "card": value("4242")})

    made = plan_of(Buy).steps["charge"].call.made
    assert made is not None
    assert [(arg.name, arg.source, arg.key, arg.value) for arg in made.args] == [
        ("amount", "step", "price", None),
        ("card", "value", "", "4242"),
    ]


def test_handlers_of_the_reactor_win() -> None:
    """A reactor may replace a class step's undo by its own."""

    class Buy(Reactor[_Receipt]):
        amount: int
        card: str
        charge = use(_Charge)

        @charge.undo
        async def refund(self, charge: _Receipt) -> None: ...

    undo = plan_of(Buy).steps["charge"].undo
    assert undo is not None
    assert undo.call.fn is Buy.refund.fn


@pytest.mark.anyio
async def test_by_hand() -> None:
    """A class step is callable by hand, through the reactor or alone, with its inputs checked (A4)."""
    checkout = _Checkout(price=1, card="4242")
    assert await checkout.charge(amount=3, card="4242") == _Receipt("3EUR")
    assert await checkout.count(ctx=Context(attempt=4)) == 4
    assert await _Charge(amount=3, card="").run() == _Receipt("3EUR")
    calls: list[Callable[[], Awaitable[_Receipt]]] = [
        lambda: checkout.charge(amount=0, card="4242"),
        _Charge(amount=0, card="").run,
    ]
    for call in calls:
        with pytest.raises(InputError) as caught:
            await call()
        assert caught.value.fields == {"amount": "Expected `int` >= 1"}
        assert caught.value.subject == "_Charge"


def test_repr_is_redacted() -> None:
    """A class step's secrets are masked as a reactor's are (A3)."""
    charge = _Charge(amount=1, card="4242")
    assert repr(charge) == "_Charge(amount=1, card='[redacted]', currency='EUR')"
    assert charge.__rich_repr__()[1] == ("card", "[redacted]")


def test_frozen() -> None:
    """A class step is frozen as a reactor is."""
    charge: Any = _Charge(amount=1, card="")
    with refuses("_Charge is frozen: a step cannot set self.tmp; return the value instead."):
        charge.tmp = 1


def test_result_type() -> None:
    """Without a return annotation on `run`, `Step[T]` says what it returns; `Skipped` is looked through."""

    class Bare(Step[list[int]]):
        async def run(self):  # type: ignore[no-untyped-def]  # noqa: ANN202
            raise NotImplementedError

    class Skips(Step[int]):
        async def run(self) -> int | Skipped[int]:
            return Skipped(1)

    class Reads(Reactor[None]):
        one = use(Bare)
        two = use(Skips)

    steps = plan_of(Reads).steps
    assert (steps["one"].returns, steps["two"].returns) == (list[int], int)


def test_inherited_class_step() -> None:
    """A class step may be inherited; its generic base's types are filled in."""

    class Convert(Step[T], Generic[T]):
        raw: T

        async def run(self) -> T:
            return self.raw

    class ConvertInt(Convert[int]): ...

    class Reads(Reactor[int]):
        raw: int
        converted = use(ConvertInt)

    assert plan_of(Reads).steps["converted"].returns is int


def test_run_returns_something_else() -> None:
    """`run` must return what `Step[T]` promises."""

    class Wrong(Step[int]):
        async def run(self) -> str:
            return ""

    with refuses("Wrong is a Step[int], but its run returns str."):

        class Reads(Reactor[None]):
            wrong = use(Wrong)


def test_unfilled_input() -> None:
    """An input that nothing fills is refused with the remedy."""
    with refuses("Buy.charge: no step or input 'amount'. Bind it: bind={'amount': ...}."):

        class Buy(Reactor[_Receipt]):
            card: str
            charge = use(_Charge)


def test_step_does_not_fill_its_own_input() -> None:
    """A class step whose input has the step's name does not read itself."""

    class Echo(Step[int]):
        echo: int

        async def run(self) -> int:
            return self.echo

    with pytest.raises(Exception, match=r"Bind it: bind=\{'echo': \.\.\.\}\.$"):

        class Reads(Reactor[int]):
            echo = use(Echo)


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        (
            {"amuont": "price"},
            "use(_Charge): bind names 'amuont', which is not an input of _Charge. Did you mean 'amount'?",
        ),
        (
            {"amount": 3},
            "use(_Charge): bind={'amount': ...} takes a step, a name or value(...), not 3.",
        ),
    ],
)
def test_wrong_bind(bind: dict[str, Any], message: str) -> None:
    """`bind=` maps inputs of the class step to steps, names or constants."""
    with refuses(message):
        use(_Charge, bind=bind)


def test_bind_to_nothing() -> None:
    """A bound name must be a step or input of the reactor, a bound step one of its steps."""
    with refuses("Buy.charge: bind of 'amount': no step or input 'prize'. Did you mean 'price'?"):

        class Buy(Reactor[_Receipt]):
            price: int
            card: str
            charge = use(_Charge, bind={"amount": "prize"})

    with refuses("Other.charge: bind of 'amount' names a step that Other does not have."):

        class Other(Reactor[_Receipt]):
            card: str
            charge = use(_Charge, bind={"amount": _Checkout.count})


def test_types_of_bound_inputs() -> None:
    """What is bound must fit the input, if both types are known."""
    with refuses("Buy.charge reads 'amount' as int, but the input 'price' is str."):

        class Buy(Reactor[_Receipt]):
            price: str
            card: str
            charge = use(_Charge, bind={"amount": "price"})

    fault = "Const.charge: invalid inputs: amount: Expected `int` >= 1"
    with refuses(f"Const.charge: bind={{'amount': value(...)}} does not fit: {fault}"):

        class Const(Reactor[_Receipt]):
            card: str
            charge = use(_Charge, bind={"amount": value(0)})


@pytest.mark.parametrize("name", ["run", "undo", "compensate", "returns", "self", "ctx", "error"])
def test_reserved_names(name: str) -> None:
    """Names with a meaning in class steps are no inputs."""
    metaclass: Any = type(Step)
    with refuses(f"Bad: {name!r} is reserved; choose another name."):
        metaclass("Bad", (Step,), {"__annotations__": {name: int}})


def test_method_parameters() -> None:
    """The methods take only what a class step can give them."""
    fields = "in a class step inputs are annotated fields, and"
    with refuses(f"Bad.run takes 'amount'; {fields} run takes only self and ctx."):

        class Bad(Step[None]):
            async def run(self, amount: int) -> None: ...

    with refuses(f"Worse.undo takes 'error'; {fields} undo takes only self and ctx and result."):

        class Worse(Step[None]):
            async def undo(self, error: StepError) -> None: ...

    with refuses("run yields; the body of the method run returns one value."):
        metaclass: Any = type(Step)

        def run(self: object) -> Any:
            yield 1

        run.__qualname__ = "run"
        metaclass("Worst", (Step,), {"run": run})


def test_use_of_something_else() -> None:
    """`use` takes a `Step` class with a `run`."""
    wrong: Any = int
    with refuses("use() takes a subclass of Step, not <class 'int'>."):
        use(wrong)

    class Idle(Step[None]): ...

    with refuses("use(Idle): Idle has no run()."):
        use(Idle)
    with refuses("use(_Charge): timeout must be more than 0, not 0."):
        use(_Charge, timeout=0)
