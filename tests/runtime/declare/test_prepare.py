"""From a step to a call: arguments by name, class steps made and checked."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from rewound import Context, InputError, PayloadError, Reactor, Step, StepError, plan_of, step, use, value
from rewound.runtime.declare import MISSING, Call, prepare

pytestmark = pytest.mark.anyio


class _Order(Struct):
    total: int


class _Charge(Step[str]):
    amount: Annotated[int, Meta(gt=0)]
    order: _Order
    currency: str
    note: str = "none"

    async def run(self, ctx: Context[Any]) -> str:
        return f"{self.amount} {self.order.total} {self.currency} {self.note} {ctx.run_id}"

    async def undo(self, result: str) -> str:
        return f"undo {result} of {self.amount} {self.order}"

    async def compensate(self, error: StepError) -> str:
        return f"{error.type} at {self.amount}"


class _Checkout(Reactor[None]):
    price: int

    @step
    async def order(self) -> Any: ...

    @step
    async def nothing(self) -> str:
        return f"nothing at {self.price}"

    @step
    def both(self, order: Any, price: int, ctx: Context[Any]) -> tuple[Any, int, str]:
        return order, price, ctx.run_id

    @both.undo
    def unboth(self, both: Any, order: Any) -> Any:
        return both, order

    @both.compensate
    def clean(self, error: StepError, order: Any) -> Any:
        return error.type, order

    charge = use(_Charge, bind={"amount": "price", "currency": value("EUR")})


PLAN = plan_of(_Checkout)
RESULTS: dict[str, Any] = {"order": _Order(7), "both": "both", "charge": "done"}


def call_of(name: str, kind: str = "forward") -> Call:
    """Find the call of a step, or of its handler."""
    found = PLAN.steps[name]
    call: Call = found.call if kind == "forward" else getattr(found, kind).call
    return call


def prepared(
    name: str, kind: str = "forward", *, price: int = 3, results: Any = None, own: Any = MISSING
) -> Any:
    """Prepare a body of the checkout."""
    return prepare(
        PLAN,
        PLAN.steps[name],
        call_of(name, kind),
        _Checkout(price=price),
        (RESULTS if results is None else results).__getitem__,
        own=own,
        error=StepError("Declined", "no", name) if kind == "compensate" else None,
        ctx=Context(run_id="r1"),
    )


async def test_no_arguments() -> None:
    """A body without parameters gets the reactor; calling it gives the coroutine."""
    assert await prepared("nothing")() == "nothing at 3"


def test_arguments_by_name() -> None:
    """Results, inputs and `ctx` are passed by name; a plain function's call gives its result."""
    assert prepared("both")() == (_Order(7), 3, "r1")


def test_handlers() -> None:
    """An undo gets its own result, given or looked up; a compensate gets the error."""
    assert prepared("both", "undo")() == ("both", _Order(7))
    assert prepared("both", "undo", own=None)() == (None, _Order(7))
    assert prepared("both", "compensate")() == ("Declined", _Order(7))


async def test_class_step() -> None:
    """A class step is made of its inputs, checked, with defaults for what nothing fills (A4)."""
    assert await prepared("charge")() == "3 7 EUR none r1"
    assert await prepared("charge", results={"order": {"total": 9}})() == "3 9 EUR none r1"


def test_invalid_input_of_a_class_step() -> None:
    """Inputs that do not fit are refused before the body starts, all of them (A4, rule S2)."""
    with pytest.raises(InputError) as caught:
        prepared("charge", price=0, results={"order": {"total": "x"}})
    assert caught.value.subject == "_Checkout.charge"
    assert caught.value.fields == {
        "amount": "Expected `int` >= 1",
        "order.total": "Expected `int`, got `str`",
    }


async def test_rollback_does_not_validate() -> None:
    """Undo and compensate run on inputs that would be refused forward; what fits is converted (rule S10)."""
    undo = prepared("charge", "undo", price=0, results={"order": {"total": 9}, "charge": "x"})
    assert await undo() == "undo x of 0 _Order(total=9)"
    assert await prepared("charge", "compensate", price=0, results={"order": "bad"})() == "Declined at 0"


def test_unresolvable_argument() -> None:
    """An argument that cannot be resolved names the step, and what it wanted (lesson 14)."""
    with pytest.raises(InputError) as caught:
        prepared("both", results={})
    assert str(caught.value) == "_Checkout.both: invalid inputs: order: the step 'order' has no result"

    def broken(name: str) -> Any:
        raise PayloadError(f"cannot read {name}")

    with pytest.raises(InputError) as caught:
        prepare(PLAN, PLAN.steps["both"], call_of("both"), _Checkout(price=1), broken, ctx=Context())
    assert caught.value.fields == {"order": "the result of 'order' cannot be read: cannot read order"}
