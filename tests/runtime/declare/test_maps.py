"""Maps: how they are declared and planned (rules M1, M2, M5, M7, M10, R12)."""

# mypy: disable-error-code="empty-body"
# nobody calls these bodies

import inspect
from typing import Any, get_args

import pytest

from rewound import Context, Reactor, plan_of, step, value
from rewound.runtime.declare import MapPlan, decode_result, element, fan_out, map_each
from rewound.runtime.declare.calls import Arg
from rewound.runtime.declare.retry import Retry
from rewound.runtime.results import Results
from tests.runtime.declare.mapped import PLAN, Billing, ChargeOrder, Order, Receipt, Total


def mapped(name: str) -> MapPlan:
    """Find a map's plan."""
    found = PLAN.steps[name].map
    assert found is not None
    return found


def test_kinds() -> None:
    """A plan tells bodies and maps apart; a map has neither body nor child of its own kind."""
    kinds = {name: each.kind for name, each in PLAN.steps.items()}
    maps = dict.fromkeys(("charges", "paged", "listed", "from_input", "again"), "map")
    assert kinds == dict.fromkeys(("loaded", "totals", "mail"), "step") | maps
    charges = PLAN.steps["charges"]
    assert (charges.child, charges.bind, charges.undo, charges.compensate) == (None, (), None, None)
    assert mapped("charges").child is plan_of(ChargeOrder)


def test_defaults() -> None:
    """A `fan_out` has 50 elements in flight and is atomic; a `map_each` has one (M1, M5)."""
    charges, listed = mapped("charges"), mapped("listed")
    assert (charges.concurrent, charges.batch_size, charges.atomic) == (True, 50, True)
    assert (listed.concurrent, listed.batch_size, listed.atomic) == (False, 1, True)
    assert (mapped("paged").batch_size, mapped("paged").atomic) == (3, False)


@pytest.mark.parametrize(
    ("name", "source", "over", "resumable", "item"),
    [
        ("charges", "generator", "rows", False, Order),
        ("paged", "generator", "pages", True, Order),
        ("listed", "step", "loaded", False, Order),
        ("from_input", "input", "given", False, Order),
        ("again", "map", "charges", False, Receipt),
    ],
)
def test_what_is_iterated(name: str, source: str, over: str, resumable: bool, item: type) -> None:  # noqa: FBT001
    """A map iterates a generator, a step's list, an input, or another map, by object or by name (M4)."""
    found = mapped(name)
    assert (found.source, found.over, found.resumable, found.item) == (source, over, resumable, item)
    assert (found.generator is None) is (source != "generator")


def test_needs() -> None:
    """A map waits for what it iterates, what its source reads, what fills its child, and `after`."""
    needs = {name: each.needs for name, each in PLAN.steps.items()}
    assert needs == {
        "loaded": (),
        "charges": ("loaded",),
        "paged": (),
        "listed": ("loaded", "charges"),
        "from_input": (),
        "again": ("charges",),
        "totals": ("charges",),
        "mail": ("charges", "totals"),
    }


def test_element_by_itself() -> None:
    """The element goes to the only required input that nothing else fills; the rest resolve by name."""
    assert mapped("charges").bind == (Arg("rate", "input", "rate"), Arg("order", "element", "charges"))


def test_element_by_name() -> None:
    """`bind=` says where the element goes."""
    assert mapped("again").bind == (Arg("receipt", "element", "again"), Arg("limit", "input", "rate"))


def test_element_twice() -> None:
    """An element may fill several inputs."""

    class Compare(Reactor[None]):
        left: int
        right: int

        @step
        async def go(self) -> None: ...

    class Twice(Reactor[None]):
        numbers: list[int]
        pairs = fan_out(Compare, over="numbers", bind={"left": element(), "right": element()})

    found = plan_of(Twice).steps["pairs"].map
    assert found is not None
    assert [arg.source for arg in found.bind] == ["element", "element"]


def test_results() -> None:
    """A map gives `Results` of its child's result, which no stored value holds."""
    charges = PLAN.steps["charges"]
    assert (charges.returns, get_args(PLAN.steps["again"].returns)) == (Results[Receipt], (type(None),))
    with pytest.raises(Exception, match=r"the results of a map are read by page"):
        decode_result(charges, b"\xc0")


def test_map_as_result() -> None:
    """A map may be what a run gives, named or as the only leaf."""

    class Charges(Reactor[Results[Receipt]]):
        orders: list[Order]
        charges = fan_out(ChargeOrder, over="orders", bind={"rate": value(1)})

    class Named(Charges):
        @step
        async def other(self) -> None: ...

        returns = Charges.charges

    assert (plan_of(Charges).returns, plan_of(Named).returns) == ("charges", "charges")


def test_collector() -> None:
    """A collector is a step that needs its map and says so (M7)."""
    totals = PLAN.steps["totals"]
    assert (totals.collects, totals.kind, totals.returns, PLAN.returns) == (
        "charges",
        "step",
        Total,
        "totals",
    )
    assert PLAN.steps["mail"].collects is None


def test_collector_options() -> None:
    """A collector takes options, may be a plain function, and have an undo; it need not read the results."""

    class Charges(Reactor[int]):
        orders: list[Order]
        charges = fan_out(ChargeOrder, over="orders", bind={"rate": value(1)})

        @charges.collect(retry=3, timeout=5)
        def count(self) -> int:
            return 0

        @count.undo
        async def forget(self, count: int) -> None: ...

    count = plan_of(Charges).steps["count"]
    assert (count.retry, count.timeout, count.needs) == (Retry(attempts=3), 5.0, ("charges",))
    assert (count.call.is_async, count.undo is None) == (False, False)


def test_undo_all() -> None:
    """`undo_all` is in the map's plan; the results are its own (R12)."""
    undo_all = mapped("charges").undo_all
    assert undo_all is not None
    assert (undo_all.retry, undo_all.timeout) == (Retry(attempts=2), 5.0)
    assert undo_all.call.args == (Arg("charges", "own", "charges"), Arg("ctx", "ctx"))
    assert mapped("paged").undo_all is None


def test_undo_all_bare() -> None:
    """`undo_all` is used bare, too, and may take the results as `result`."""

    class Charges(Reactor[None]):
        orders: list[Order]
        charges = fan_out(ChargeOrder, over="orders", bind={"rate": value(1)})

        @charges.undo_all
        async def refund_all(self, result: Results[Receipt], orders: list[Order]) -> None: ...

    found = plan_of(Charges).steps["charges"].map
    assert found is not None
    assert found.undo_all is not None
    assert [arg.source for arg in found.undo_all.call.args] == ["own", "input"]


def test_overriding() -> None:
    """A subclass overrides a map, its source, its collector and its bulk undo one by one."""

    class Weekly(Billing):
        charges = fan_out(ChargeOrder, over=Billing.pages, batch_size=7)

        @Billing.charges.collect
        async def totals(self, charges: Results[Receipt]) -> Total: ...

        @Billing.charges.undo_all
        async def refund_all(self, charges: Results[Receipt], ctx: Context[Any]) -> None: ...

    steps = plan_of(Weekly).steps
    found = steps["charges"].map
    assert found is not None
    assert (found.over, found.batch_size, steps["totals"].collects) == ("pages", 7, "charges")
    assert list(steps) == list(PLAN.steps)


def test_by_hand() -> None:
    """A source, a collector and a bulk undo are plain methods on an instance; a map stays a name."""
    billing = Billing(month="m", rate=1)
    assert billing.charges is Billing.charges
    assert inspect.isasyncgenfunction(billing.rows)
    assert inspect.iscoroutinefunction(billing.totals)
    assert inspect.iscoroutinefunction(billing.refund_all)
    assert (Billing.rows.__doc__, repr(Billing.rows)) == (
        "Yield the orders again, and then the month's.",
        "<SourceDef 'rows'>",
    )


@pytest.mark.parametrize("given", [True, False])
def test_fail_fast(given: bool) -> None:  # noqa: FBT001
    """`fail_fast=` means `atomic=`, with one warning for each declaration (M10)."""
    message = rf"^fan_out\(ChargeOrder\): fail_fast= is deprecated, write atomic={given}\.$"
    with pytest.warns(DeprecationWarning, match=message) as caught:
        made = fan_out(ChargeOrder, over="given", fail_fast=given)
    assert made.how.atomic is given
    assert [each.filename for each in caught] == [__file__]


def test_fail_fast_of_map_each() -> None:
    """`map_each` takes the old name, too (M10)."""
    with pytest.warns(
        DeprecationWarning, match=r"^map_each\(ChargeOrder\): fail_fast= is deprecated"
    ) as caught:
        made = map_each(ChargeOrder, over="given", fail_fast=False)
    assert (made.how.atomic, len(caught)) == (False, 1)


def test_item_that_the_child_knows() -> None:
    """Where what is iterated does not say of what type it is, the child's input does."""

    class Loose(Reactor[None]):
        numbers: list[Any]

        @step
        async def bare(self) -> list: ...  # type: ignore[type-arg]  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]

        @step
        async def pairs(self) -> tuple[Order, int]: ...

        @step
        async def fixed(self) -> tuple[int, ...]: ...

        one = fan_out(ChargeOrder, over="numbers", bind={"rate": value(1)})
        two = fan_out(ChargeOrder, over="bare", bind={"rate": value(1)})
        three = fan_out(ChargeOrder, over="pairs", bind={"rate": value(1)})
        four = fan_out(ChargeOrder, over="fixed", bind={"order": value(Order(1)), "rate": element()})

    items = [each.map.item for each in plan_of(Loose).steps.values() if each.map]
    assert items == [Order, Order, Order, int]
