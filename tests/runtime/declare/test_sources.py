"""Definition errors about the sources of maps."""

# mypy: disable-error-code="empty-body, no-redef"
# pyright: reportUnusedClass=false, reportRedeclaration=false
# the classes are wrong on purpose; what type checkers say of them is not the point here

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
from msgspec import Struct

from rewound import Context, Reactor, plan_of, step
from rewound.runtime.declare import fan_out, source
from rewound.runtime.results import Page
from tests.runtime.declare.refusals import declare, refuses


class _Order(Struct):
    id: int


class _Charge(Reactor[str]):
    order: _Order

    @step
    async def charge(self) -> str: ...


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
