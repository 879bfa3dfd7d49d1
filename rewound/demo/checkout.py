"""The saga of the demo: reserve the goods, charge the card, ship; whatever fails takes the rest back."""

from typing import Final, TypedDict

from msgspec import Struct

from rewound import Context, Reactor, Retry, StepError, step
from rewound.demo.client import Declined, Payments
from rewound.demo.orders import Order
from rewound.demo.stock import Stock

__all__ = ["NAME", "Checkout", "Reservation", "Shipment", "Shop", "Undeliverable"]

NAME: Final = "rewound.demo.Checkout"  # under which its runs are stored
NOT_SERVED: Final = frozenset({"AQ"})  # no carrier goes to Antarctica


class Shop(TypedDict):
    """What the steps work with: the runtime's `state`."""

    stock: Stock
    payments: Payments


class Reservation(Struct, frozen=True):
    """Goods set aside, and what they cost."""

    sku: str
    quantity: int
    cents: int


class Shipment(Struct, frozen=True):
    """The end of a good order."""

    order: str
    cents: int


class Undeliverable(Exception):  # noqa: N818  named by what happened, as the library's own errors are
    """No carrier goes there."""


class Checkout(Reactor[Shipment], name=NAME):
    """Reserve the goods, charge the card, ship."""

    order: Order

    @step
    def reserve(self, ctx: Context[Shop]) -> Reservation:
        """Set the goods aside. A plain `def`: SQLite blocks, so it runs in a thread."""
        order = self.order
        ctx.state["stock"].reserve(order.order, order.sku, order.quantity)
        return Reservation(order.sku, order.quantity, order.cents)

    @reserve.undo
    def release(self, ctx: Context[Shop]) -> None:
        """Put them back."""
        ctx.state["stock"].release(self.order.order)

    @step(retry=Retry(attempts=3, delay=0.2, never=(Declined,)), timeout=1.0)
    async def charge(self, reserve: Reservation, ctx: Context[Shop]) -> int:
        """Charge the card. The key is the same for every attempt, and after a crash: one charge at most."""
        payments, order = ctx.state["payments"], self.order
        await payments.charge(order.order, order.card, reserve.cents, key=ctx.idempotency_key)
        return reserve.cents

    @charge.compensate
    async def void(self, error: StepError, ctx: Context[Shop]) -> None:
        """Call the payment off: an attempt that timed out may have been booked all the same."""
        ctx.log.info("calling off a payment: %s", error.message)
        await ctx.state["payments"].void(self.order.order, key=ctx.idempotency_key)

    @charge.undo
    async def refund(self, ctx: Context[Shop]) -> None:
        """Give the money back."""
        await ctx.state["payments"].refund(self.order.order, key=ctx.idempotency_key)

    @step
    def ship(self, charge: int, ctx: Context[Shop]) -> Shipment:
        """Hand the parcel to the carrier."""
        if self.order.country in NOT_SERVED:
            raise Undeliverable(f"no carrier goes to {self.order.country}")
        ctx.state["stock"].ship(self.order.order)
        return Shipment(self.order.order, charge)

    @ship.undo
    def recall(self, ctx: Context[Shop]) -> None:
        """Have the parcel brought back."""
        ctx.state["stock"].recall(self.order.order)
