"""Do money and stock add up? Asked of the payment service's book and the warehouse, not of Rewound."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from rewound.demo.ledger import Entry
from rewound.demo.orders import Order
from rewound.demo.stock import Parcel

__all__ = ["Finding", "audit", "euros", "kept_by_order"]


class Finding(Struct, frozen=True):
    """One thing that was checked: whether it holds, and the figures."""

    name: str
    holds: bool
    figures: str


def audit(
    orders: Iterable[Order],
    good: Collection[str],
    entries: Iterable[Entry],
    parcels: Mapping[str, Parcel],
    missing: Mapping[str, int],
) -> list[Finding]:
    """Compare what should be with what is.

    Args:
        orders: all of them.
        good: the numbers of those that completed and were not undone.
        entries: the payment service's book.
        parcels: the warehouse's parcels by order.
        missing: how many of each article are gone from the shelf.
    """
    book = list(entries)
    wanted = {order.order: order for order in orders}
    due = {number: order.cents if number in good else 0 for number, order in wanted.items()}
    kept = kept_by_order(book)
    sent = Counter[str]()
    for number in good:
        sent[wanted[number].sku] += wanted[number].quantity
    return [
        _money(due, kept),
        _each("every order is paid if it completed, and else is not", _differing(due, kept)),
        _each("no order was charged twice", _repeated(book)),
        _stock(sent, missing),
        _each("every parcel is shipped if its order completed, and else is not", _misplaced(good, parcels)),
    ]


def kept_by_order(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the cents charged and not given back, by order."""
    kept: Counter[str] = Counter()
    for entry in entries:
        kept[entry.order] += entry.cents if entry.kind == "charge" else -entry.cents
    return dict(kept)


def euros(cents: int) -> str:
    """Show cents as euros."""
    return f"{cents / 100:,.2f} €"


def _money(due: Mapping[str, int], kept: Mapping[str, int]) -> Finding:
    should, are = sum(due.values()), sum(kept.values())
    figures = f"{euros(are)} kept, {euros(should)} due"
    return Finding("money kept is the price of the completed orders", should == are, figures)


def _stock(sent: Mapping[str, int], missing: Mapping[str, int]) -> Finding:
    holds = all(sent.get(sku, 0) == gone for sku, gone in missing.items())
    figures = f"{sum(missing.values())} pieces gone, {sum(sent.values())} sold"
    return Finding("what is gone from the shelves was sold", holds, figures)


def _differing(due: Mapping[str, int], kept: Mapping[str, int]) -> list[str]:
    return [number for number in {**due, **kept} if due.get(number, 0) != kept.get(number, 0)]


def _repeated(entries: Iterable[Entry]) -> list[str]:
    charges = Counter(entry.order for entry in entries if entry.kind == "charge")
    return [number for number, count in charges.items() if count > 1]


def _misplaced(good: Collection[str], parcels: Mapping[str, Parcel]) -> list[str]:
    shipped = {number for number, parcel in parcels.items() if parcel.state == "shipped"}
    held = {number for number, parcel in parcels.items() if parcel.state == "held"}
    return sorted((shipped ^ set(good)) | held)


def _each(name: str, wrong: list[str]) -> Finding:
    return Finding(name, not wrong, f"not so for {', '.join(wrong)}" if wrong else "all of them")
