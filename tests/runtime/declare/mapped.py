"""A reactor with maps, for the tests of their plans."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from msgspec import Meta, Struct

from rewound import Context, Reactor, step
from rewound.runtime.declare import element, fan_out, map_each, plan_of, source
from rewound.runtime.results import Page, Results

__all__ = ["PLAN", "Billing", "ChargeOrder", "Order", "Receipt", "Total"]


class Order(Struct):
    """What a map iterates."""

    id: int


class Receipt(Struct):
    """What an element gives."""

    id: int


class Total(Struct):
    """What a collector gives."""

    count: int


class ChargeOrder(Reactor[Receipt]):
    """Charge one order."""

    order: Order
    rate: Annotated[int, Meta(ge=0)]
    tags: list[str] = []  # noqa: RUF012  # msgspec copies it
    note: str = "none"

    @step
    async def charge(self) -> Receipt:
        """Charge."""
        return Receipt(self.order.id)


class Billing(Reactor[Total]):
    """Charge all orders, in every way there is to iterate."""

    month: str
    rate: int
    given: list[Order] = []  # noqa: RUF012  # msgspec copies it

    @step
    async def loaded(self) -> list[Order]:
        """Load the orders."""
        return []

    @source
    async def rows(self, ctx: Context[Any], loaded: list[Order]) -> AsyncIterator[Order]:
        """Yield the orders again, and then the month's."""
        for order in loaded:
            yield order
        yield Order(len(self.month))

    @source
    async def pages(self, ctx: Context[Any], cursor: int | None) -> AsyncIterator[Page[Order]]:
        """Yield pages of orders."""
        start = cursor or 0
        yield Page([Order(start), Order(start + 1)], start + 2)

    charges = fan_out(ChargeOrder, over=rows)
    paged = fan_out(ChargeOrder, over="pages", batch_size=3, atomic=False)
    listed = map_each(ChargeOrder, over=loaded, after="charges")
    from_input = map_each(ChargeOrder, over="given")

    class Again(Reactor[None]):
        """Look at a receipt."""

        receipt: Receipt
        limit: int

        @step
        async def look(self) -> None:
            """Look."""

    again = fan_out(Again, over=charges, bind={"receipt": element(), "limit": "rate"})

    @charges.collect
    async def totals(self, charges: Results[Receipt]) -> Total:
        """Count."""
        return Total(len(charges))

    @charges.undo_all(retry=2, timeout=5)
    async def refund_all(self, charges: Results[Receipt], ctx: Context[Any]) -> None:
        """Refund."""

    @step
    async def mail(self, charges: Results[Receipt], totals: Total) -> str:
        """Mail the total."""
        return f"{len(charges)} {totals.count}"

    returns = totals


PLAN = plan_of(Billing)
