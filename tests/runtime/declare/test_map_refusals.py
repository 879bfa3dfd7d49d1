"""Definition errors about maps: what they iterate, what they run, their options."""

# mypy: disable-error-code="empty-body, no-redef"
# pyright: reportUnusedClass=false, reportRedeclaration=false
# the classes are wrong on purpose; what type checkers say of them is not the point here

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Struct

from rewound import Reactor, step, value
from rewound.runtime.declare import compose, element, fan_out, map_each, source
from rewound.runtime.results import Results
from tests.runtime.declare.refusals import declare, refuses


class _Order(Struct):
    id: int


class _Charge(Reactor[str]):
    order: _Order

    @step
    async def charge(self) -> str: ...


def charged(**options: Any) -> Any:
    """Declare a map with options that type checkers would refuse."""
    given: dict[str, Any] = {"over": "orders"} | options
    return fan_out(_Charge, **given)


@pytest.mark.parametrize("size", [0, -1, True, 2.0, None, "50"])
def test_batch_size(size: Any) -> None:
    """`batch_size` is a whole number from 1: there is no unbounded mode (M2)."""
    with refuses(f"fan_out(_Charge): batch_size= takes a whole number from 1, not {size!r}."):
        charged(batch_size=size)


def test_batch_size_of_map_each() -> None:
    """`map_each` has one element in flight, so there is nothing to choose (M1)."""
    each: Any = map_each
    why = "batch_size= is not for map_each, whose elements run one after another: use fan_out."
    with refuses(f"map_each(_Charge): {why}"):
        each(_Charge, over="orders", batch_size=2)


@pytest.mark.parametrize("atomic", [True, False])
def test_both_names(atomic: bool) -> None:  # noqa: FBT001
    """`atomic=` is given under one of its names (M10)."""
    with refuses("fan_out(_Charge): fail_fast= is the old name of atomic=; give atomic= alone."):
        charged(atomic=atomic, fail_fast=atomic)


def test_atomic() -> None:
    """`atomic=` is yes or no."""
    with refuses("fan_out(_Charge): atomic= takes True or False, not 'no'."):
        charged(atomic="no")


def test_not_a_child() -> None:
    """A map's child is a reactor that can be spawned."""
    wrong: Any = int
    with refuses("fan_out() takes a Reactor, not <class 'int'>."):
        fan_out(wrong, over="orders")
    with refuses("map_each() takes a Reactor, not <class 'int'>."):
        map_each(wrong, over="orders")


def test_over_a_list() -> None:
    """What is iterated is declared; a plain list is not."""
    remedy = "make a list an input, or let a step return it."
    with refuses(f"fan_out(_Charge): over= takes a source, a step, a map, or a name, not [1]; {remedy}"):
        charged(over=[1])


def test_over_nothing() -> None:
    """`over=` names what is there; what may have been meant is suggested."""
    with refuses("Billing.charges: over=: no source, step or input 'rwos'. Did you mean 'rows'?"):

        class Billing(Reactor[None]):
            @source
            async def rows(self) -> AsyncIterator[_Order]:
                yield _Order(1)

            charges = fan_out(_Charge, over="rwos")


def test_over_something_foreign() -> None:
    """`over=` cannot take another reactor's source or step."""

    class Other(Reactor[None]):
        @source
        async def rows(self) -> AsyncIterator[_Order]:
            yield _Order(1)

        @step
        async def orders(self) -> list[_Order]: ...

    with refuses("Billing.charges: over= names a source that Billing does not have."):
        declare("Billing", {"charges": fan_out(_Charge, over=Other.rows)})
    with refuses("Billing.charges: over= names a step that Billing does not have."):
        declare("Billing", {"charges": fan_out(_Charge, over=Other.orders)})


def test_over_itself() -> None:
    """A map cannot iterate itself."""
    with refuses("Billing: the steps charges <- charges need each other; no step could start."):
        declare("Billing", {"charges": fan_out(_Charge, over="charges")})


@pytest.mark.parametrize(
    ("kind", "shown"),
    [(str, "str"), (set[int], "set[int]"), (dict[str, int], "dict[str, int]"), (_Order, "_Order")],
)
def test_over_no_list(kind: Any, shown: str) -> None:
    """What provably is no list is refused; a set has no order that would survive a crash."""
    body = {"__annotations__": {"orders": kind}, "charges": fan_out(_Charge, over="orders")}
    with refuses(f"Billing.charges: over= takes a list, but the input 'orders' is {shown}."):
        declare("Billing", body)


def test_over_a_child_that_gives_results() -> None:
    """The results of a map inside a child are no list either."""

    class Inner(Reactor[Results[str]]):
        orders: list[_Order]
        charges = fan_out(_Charge, over="orders")

    why = "over= takes a list, but the step 'inner' returns Results[str]."
    with refuses(f"Billing.again: {why}"):

        class Billing(Reactor[None]):
            orders: list[_Order]
            inner = compose(Inner)
            again = fan_out(_Charge, over=inner, bind={"order": element()})


def test_no_input_for_the_element() -> None:
    """An element that goes nowhere is refused."""
    why = "every input of _Charge is filled, and none with the element"
    with refuses(f"Billing.charges: {why}: say which takes it, such as bind={{'order': element()}}."):

        class Billing(Reactor[None]):
            orders: list[_Order]
            order: _Order
            charges = fan_out(_Charge, over="orders")

    class Nothing(Reactor[None]):
        @step
        async def go(self) -> None: ...

    with refuses("Silent.all: Nothing has no input that could take the element."):
        declare("Silent", {"__annotations__": {"orders": list[int]}, "all": fan_out(Nothing, over="orders")})


def test_several_inputs_for_the_element() -> None:
    """Where several inputs are left, the author says which takes the element."""

    class Convert(Reactor[None]):
        amount: int
        rate: int
        note: str = ""

        @step
        async def go(self) -> None: ...

    why = "nothing fills 'amount' and 'rate' of Convert, and the element goes to one of them"
    with refuses(f"Billing.all: {why}: say which, such as bind={{'amount': element()}}, and bind the rest."):

        class Billing(Reactor[None]):
            amounts: list[int]
            all = fan_out(Convert, over="amounts")

    remedy = "no step or input 'rate'. Did you mean 'rates'? Bind it: bind={'rate': ...}."
    with refuses(f"Rated.all: {remedy}"):

        class Rated(Reactor[None]):
            rates: list[int]
            all = fan_out(Convert, over="rates", bind={"amount": element()})


def test_element_of_another_type() -> None:
    """An element that provably does not fit the child is refused."""
    with refuses("Billing.charges reads 'order' as _Order, but the element is int."):

        class Billing(Reactor[None]):
            numbers: list[int]
            charges = fan_out(_Charge, over="numbers")


def test_bad_bind() -> None:
    """`bind=` is checked as for any child."""
    near = "which is not an input of _Charge. Did you mean 'order'?"
    with refuses(f"fan_out(_Charge): bind names 'oder', {near}"):
        charged(bind={"oder": element()})
    with refuses("map_each(_Charge): bind names 'oder', " + near):
        map_each(_Charge, over="orders", bind={"oder": element()})

    class Pair(_Charge):
        other: int

    why = "Billing.charges: invalid inputs: order: Expected `object`, got `int`"
    with refuses(f"Billing.charges: bind={{'order': value(...)}} does not fit: {why}"):

        class Billing(Reactor[None]):
            orders: list[int]
            charges = fan_out(Pair, over="orders", bind={"order": value(3)})
