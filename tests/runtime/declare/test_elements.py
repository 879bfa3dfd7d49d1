"""The inputs of a map's elements."""

from typing import Any

import pytest

from rewound import InputError, Reactor, plan_of, step, value
from rewound.runtime.declare import ElementInputs, child_inputs, element, fan_out
from tests.runtime.declare.mapped import PLAN, Billing, ChargeOrder, Order


def nothing(name: str) -> Any:
    """Stand for a run without results."""
    raise KeyError(name)


def inputs(name: str = "charges", rate: int = 3) -> ElementInputs:
    """Prepare the inputs of one map's elements."""
    return ElementInputs(PLAN, PLAN.steps[name], Billing(month="m", rate=rate), nothing)


def test_made_of_an_item() -> None:
    """An element has its item, what all elements share, and the child's defaults."""
    assert inputs().make(Order(7)) == ChargeOrder(order=Order(7), rate=3, tags=[], note="none")


def test_made_of_a_plain_item() -> None:
    """An item is converted to what the child's input says."""
    assert inputs().make({"id": 7}).order == Order(7)


def test_nothing_shared() -> None:
    """What one element changes, another one does not see, nor does whoever gave the item."""
    making, order = inputs(), Order(7)
    one, two = making.make(order), making.make(order)
    assert one.tags is not two.tags
    assert one.order is not order


def test_item_that_does_not_fit() -> None:
    """An item that does not fit names the map, and the child's input (rule S2)."""
    with pytest.raises(InputError) as caught:
        inputs().make({"id": "x"})
    assert str(caught.value) == "Billing.charges: invalid inputs: order.id: Expected `int`, got `str`"


def test_common_inputs_that_do_not_fit() -> None:
    """What all elements share is checked once, before any of them is made (rule S2)."""
    with pytest.raises(InputError) as caught:
        inputs(rate=-1)
    assert str(caught.value) == "Billing.charges: invalid inputs: rate: Expected `int` >= 0"


def test_result_that_is_not_there() -> None:
    """A result that all elements share and that is missing names the map (lesson 14)."""

    class Rated(Reactor[None]):
        orders: list[Order]

        @step
        async def rate(self) -> int: ...  # type: ignore[empty-body]

        charges = fan_out(ChargeOrder, over="orders")

    plan = plan_of(Rated)
    with pytest.raises(InputError) as caught:
        ElementInputs(plan, plan.steps["charges"], Rated(orders=[]), nothing)
    assert str(caught.value) == "Rated.charges: invalid inputs: rate: the step 'rate' has no result"
    made = ElementInputs(plan, plan.steps["charges"], Rated(orders=[]), {"rate": 9}.__getitem__).make(
        Order(1)
    )
    assert made.rate == 9


def test_inputs_that_do_not_fit_together() -> None:
    """A child that compares its inputs refuses those of an element by the map's name."""

    class Range(Reactor[None]):
        low: int
        high: int

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low is above high")

        @step
        async def go(self) -> None: ...

    class All(Reactor[None]):
        lows: list[int]
        ranges = fan_out(Range, over="lows", bind={"low": element(), "high": value(5)})

    plan = plan_of(All)
    making = ElementInputs(plan, plan.steps["ranges"], All(lows=[]), nothing)
    assert making.make(5) == Range(low=5, high=5)
    with pytest.raises(InputError, match=r"All\.ranges: invalid inputs: \*: low is above high"):
        making.make(6)


def test_only_of_a_map() -> None:
    """Only a map has elements, and a map is no composed child."""
    with pytest.raises(LookupError, match=r"Billing\.mail is no map"):
        inputs("mail")
    with pytest.raises(LookupError, match=r"Billing\.charges composes nothing"):
        child_inputs(PLAN, PLAN.steps["charges"], Billing(month="m", rate=1), nothing)
