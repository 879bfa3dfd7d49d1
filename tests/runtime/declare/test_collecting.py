"""Definition errors about what reads a map's results: collectors, bulk undos, other steps."""

# mypy: disable-error-code="empty-body, no-redef"
# pyright: reportUnusedClass=false, reportRedeclaration=false
# the classes are wrong on purpose; what type checkers say of them is not the point here

from typing import Any

import pytest
from msgspec import Struct

from rewound import Reactor, Step, step, use
from rewound.runtime.declare import compose, fan_out
from rewound.runtime.results import Results
from tests.runtime.declare.refusals import declare, refuses


class _Order(Struct):
    id: int


class _Charge(Reactor[str]):
    order: _Order

    @step
    async def charge(self) -> str: ...


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
    made: Any = fan_out(_Charge, over="orders")
    for kind in ("undo", "compensate"):
        remedy = (
            f"give the steps of _Charge their own @step_name.{kind}, or take all of them back in one call"
        )
        with refuses(f".{kind} of a child: {remedy} with .undo_all."):
            getattr(made, kind)
