"""Definition errors about maps, their sources, collectors and bulk undos."""

# mypy: disable-error-code="empty-body, no-redef"
# pyright: reportUnusedClass=false, reportRedeclaration=false
# the classes are wrong on purpose; what type checkers say of them is not the point here

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
from msgspec import Struct

from rewound import Context, Reactor, Step, plan_of, step, use, value
from rewound.runtime.declare import compose, element, fan_out, map_each, source
from rewound.runtime.results import Page, Results
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


def test_reading_a_source() -> None:
    """Only a map reads a source."""
    why = "reads 'rows', which is a source: only a map reads it, with over=rows."
    with refuses(f"Billing.total {why}"):

        class Billing(Reactor[None]):
            @source
            async def rows(self) -> AsyncIterator[_Order]:
                yield _Order(1)

            @step
            async def total(self, rows: Any) -> int: ...


def test_after_a_source() -> None:
    """A source is nothing to wait for."""

    async def rows(self: object) -> AsyncIterator[int]:
        yield 1

    async def go(self: object) -> None: ...

    with refuses("go: after= takes a step or its name, not the source rows."):
        step(after=cast("Any", source(rows)))(go)


def test_returning_a_source() -> None:
    """A source is no result."""

    async def rows(self: object) -> AsyncIterator[int]:
        yield 1

    async def go(self: object) -> None: ...

    made = source(rows)
    with refuses("Billing: returns = takes one of its steps, not 'rows'."):
        declare("Billing", {"rows": made, "go": step(go), "returns": made})


def test_source_without_yield() -> None:
    """A source yields, and does so without blocking the loop."""

    async def rows(self: object) -> list[int]: ...

    def plain(self: object) -> Iterator[int]:
        yield 1

    made = cast("Callable[..., Any]", source)
    with refuses("@source rows has no yield."):
        made(rows)
    with refuses("@source plain is a plain generator, which would block: write async def."):
        made(plain)
    with refuses("@source decorates a function that takes self, not 3."):
        made(3)


def test_names_of_sources() -> None:
    """A source's name is its own, like a step's."""

    async def rows(self: object) -> AsyncIterator[int]:
        yield 1

    async def go(self: object) -> None: ...

    with refuses("'rows' is both an input and a source of Billing."):
        declare("Billing", {"__annotations__": {"rows": int}, "rows": source(rows)})
    with refuses("Billing: 'error' is reserved; choose another name."):
        declare("Billing", {"error": source(rows)})
    made = source(rows)
    with refuses("Billing: 'again' is 'rows' again; write a source of its own."):
        declare("Billing", {"rows": made, "again": made})

    class Base(Reactor[None]):
        @source
        async def rows(self) -> AsyncIterator[int]:
            yield 1

    metaclass: Any = type(Base)
    with refuses("Child.rows hides the source 'rows': add @source to override it."):
        metaclass("Child", (Base,), {"rows": 3})
    with refuses("Child.rows hides the source 'rows': add @source to override it."):
        metaclass("Child", (Base,), {"rows": step(go)})


def test_source_defined_twice() -> None:
    """A source whose name is used again would be lost, so it is refused."""
    with refuses("Billing defines 'rows' twice; give each a name of its own."):

        class Billing(Reactor[None]):
            @source
            async def rows(self) -> AsyncIterator[int]:
                yield 1

            @source
            async def rows(self) -> AsyncIterator[int]:  # noqa: F811
                yield 2


def test_source_reads_nothing() -> None:
    """A source's parameters are resolved by name, like a step's."""
    with refuses("Billing.rows: no step or input 'mnth'. Did you mean 'month'?"):

        class Billing(Reactor[None]):
            month: str

            @source
            async def rows(self, mnth: str) -> AsyncIterator[_Order]:
                yield _Order(1)


def test_source_reads_something_else() -> None:
    """What a source reads must be able to fit."""
    with refuses("Billing.rows reads 'month' as int, but the input 'month' is str."):

        class Billing(Reactor[None]):
            month: str

            @source
            async def rows(self, month: int) -> AsyncIterator[_Order]:
                yield _Order(month)

            charges = fan_out(_Charge, over=rows)


def test_pages_and_cursors() -> None:
    """Pages and a cursor go together (M4)."""
    with refuses("Billing.rows yields Page[_Order], so it must take the parameter cursor."):

        class Billing(Reactor[None]):
            @source
            async def rows(self, ctx: Context[Any]) -> AsyncIterator[Page[_Order]]:
                yield Page([])

            charges = fan_out(_Charge, over=rows)

    with refuses("Invoice.rows takes a cursor, so it yields Page(items, cursor), not _Order."):

        class Invoice(Reactor[None]):
            @source
            async def rows(self, cursor: int | None) -> AsyncIterator[_Order]:
                yield _Order(cursor or 0)

            charges = fan_out(_Charge, over=rows)


def test_reading_results_as_something_else() -> None:
    """What a step reads of a map is `Results`."""
    why = "Billing.total reads 'charges' as {}, but the step 'charges' returns Results[str]."
    for kind, shown in ((list[str], "list[str]"), (Results[int], "Results[int]")):

        async def total(self: object, charges: Any) -> int: ...

        total.__annotations__["charges"] = kind
        body = {
            "__annotations__": {"orders": list[_Order]},
            "charges": fan_out(_Charge, over="orders"),
            "total": step(total),
        }
        with refuses(why.format(shown)):
            declare("Billing", body)


def test_results_as_an_input() -> None:
    """The results of a map are no value that a child or class step could take."""

    class Mail(Reactor[None]):
        receipts: Any

        @step
        async def send(self) -> None: ...

    class Send(Step[None]):
        receipts: Any

        async def run(self) -> None: ...

    why = "'charges' gives Results[str], which cannot be an input: it is read by page."
    remedy = "Let a collector or a step make a value of it."
    for other in (compose(Mail, bind={"receipts": "charges"}), use(Send, bind={"receipts": "charges"})):
        body = {
            "__annotations__": {"orders": list[_Order]},
            "charges": fan_out(_Charge, over="orders"),
            "mail": other,
        }
        with refuses(f"Billing.mail: {why} {remedy}"):
            declare("Billing", body)


def test_results_of_a_step() -> None:
    """A step cannot return the results of a map: they are read, not stored again."""
    with pytest.raises(Exception, match=r"^Billing\.again: its result: a Results cannot be stored"):

        class Billing(Reactor[None]):
            orders: list[_Order]
            charges = fan_out(_Charge, over="orders")

            @step
            async def again(self, charges: Results[str]) -> Results[str]:
                return charges


def test_two_collectors() -> None:
    """A map has one collector."""
    with refuses("Billing.charges has two collectors: totals, sums."):

        class Billing(Reactor[None]):
            orders: list[_Order]
            charges = fan_out(_Charge, over="orders")

            @charges.collect
            async def totals(self) -> int: ...

            @charges.collect
            async def sums(self) -> int: ...


def test_two_bulk_undos() -> None:
    """A map has one bulk undo."""
    with refuses("Billing.charges has two undo_all handlers: refund, again."):

        class Billing(Reactor[None]):
            orders: list[_Order]
            charges = fan_out(_Charge, over="orders")

            @charges.undo_all
            async def refund(self) -> None: ...

            @charges.undo_all
            async def again(self) -> None: ...


def test_reading_a_bulk_undo() -> None:
    """A bulk undo has no result, and reads only what is there when it runs."""
    with refuses("Billing.mail reads 'refund', which is the undo_all of 'charges', not a step."):

        class Billing(Reactor[None]):
            orders: list[_Order]
            charges = fan_out(_Charge, over="orders")

            @charges.undo_all
            async def refund(self) -> None: ...

            @step
            async def mail(self, refund: None) -> None: ...

    why = "which 'charges' does not depend on; it may read what 'charges' depends on, inputs and ctx."
    with refuses(f"Invoice.refund reads 'mail', {why}"):

        class Invoice(Reactor[None]):
            orders: list[_Order]
            charges = fan_out(_Charge, over="orders")

            @charges.undo_all
            async def refund(self, mail: None) -> None: ...

            @step
            async def mail(self) -> None: ...


def test_collector_of_nothing() -> None:
    """A collector and a bulk undo belong to a map of the same reactor."""

    class Base(Reactor[None]):
        orders: list[_Order]
        charges = fan_out(_Charge, over="orders")

    @Base.charges.collect
    async def totals(self: object) -> int: ...

    @Base.charges.undo_all
    async def refund(self: object) -> None: ...

    async def go(self: object) -> None: ...

    with refuses("Other.totals collects 'charges', which is no map of Other."):
        declare("Other", {"totals": totals})
    with refuses("Other.refund is the undo_all of 'charges', which Other does not have."):
        declare("Other", {"refund": refund, "go": step(go)})
    with refuses("Other.refund is the undo_all of 'charges', which is no map here."):
        declare("Other", {"refund": refund, "charges": step(go)})


def test_undo_of_a_map() -> None:
    """A map has no undo of its own; both remedies are told."""
    made: Any = charged()
    for kind in ("undo", "compensate"):
        remedy = (
            f"give the steps of _Charge their own @step_name.{kind}, or take all of them back in one call"
        )
        with refuses(f".{kind} of a child: {remedy} with .undo_all."):
            getattr(made, kind)


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


def test_planned_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map whose source names what is not defined yet is planned when it is."""

    class Billing(Reactor[None]):
        @source
        async def rows(self) -> "AsyncIterator[Missing]":  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
            yield _Order(1)

        charges = fan_out(_Charge, over="rows")

    where = "'Missing' in Billing.rows is not defined yet"
    with refuses(f"{where} (or is imported only under TYPE_CHECKING)."):
        plan_of(Billing)
    monkeypatch.setitem(globals(), "Missing", _Order)
    found = plan_of(Billing).steps["charges"].map
    assert found is not None
    assert found.item is _Order
