"""The orders of the demo: one struct a row of a CSV file, and errors that say which row to mend."""

import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

__all__ = ["SHIPPED", "Order", "OrdersError", "read_orders"]

SHIPPED: Final = Path(__file__).with_name("orders.csv")
_SHOWN: Final = 10  # bad rows listed in one error
_DEAREST: Final = Decimal(100_000)

Text = Annotated[str, Meta(min_length=1, max_length=200)]


class OrdersError(ValueError):
    """A file of orders cannot be used; the message lists what to mend."""


class Order(Struct, frozen=True, kw_only=True):
    """One order: so many of one article, paid by one card.

    Args:
        order: its number, unique in the file.
        customer: a name.
        email: where to write to.
        sku: the article.
        quantity: how many.
        price: of one, in euros and cents.
        card: the card's number; the payment service knows some that misbehave.
        country: where to ship to, two letters.
    """

    order: Annotated[str, Meta(min_length=1, max_length=40)]
    customer: Text
    email: Annotated[str, Meta(pattern=r".+@.+")]
    sku: Text
    quantity: Annotated[int, Meta(ge=1, le=10_000)]
    price: Decimal
    card: Annotated[str, Meta(pattern=r"^[0-9]{12,19}$")]
    country: Annotated[str, Meta(pattern=r"^[A-Z]{2}$")]

    def __post_init__(self) -> None:
        if not self.price.is_finite() or not 0 < self.price <= _DEAREST:
            raise ValueError(f"Expected a price above 0, at most {_DEAREST}")
        if self.price != round(self.price, 2):
            raise ValueError("Expected a price with at most two decimals")

    @property
    def cents(self) -> int:
        """What the order costs, in cents."""
        return int(self.price * 100) * self.quantity


def read_orders(path: Path) -> list[Order]:
    """Read a CSV file of orders, UTF-8, with a header that names the columns.

    Args:
        path: the file. Its columns are the fields of `Order`, in any order; further ones are ignored.

    Raises:
        OrdersError: the file is missing, empty, lacks columns, or has bad rows: each is listed with its
            line, column and fault.
    """
    rows = _rows_of(path)
    if not rows:
        raise OrdersError(f"{path} has no orders.")
    _check_columns(path, set(rows[0][1]))
    orders: list[Order] = []
    faults: list[str] = []
    for line, row in rows:
        try:
            orders.append(msgspec.convert(row, Order, strict=False))
        except msgspec.ValidationError as error:
            faults.append(f"line {line}: {_mended(str(error))}")
    faults += _repeats(orders)
    if faults:
        more = [f"... and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        raise OrdersError("\n  ".join([f"{path} has bad rows:", *faults[:_SHOWN], *more]))
    return orders


def _rows_of(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Return each row with the line it ends on."""
    try:
        # utf-8-sig: spreadsheets put a byte order mark in front.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="", restkey="")
            return [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise OrdersError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise OrdersError(f"{path} is not UTF-8 text: save it as CSV UTF-8.") from error
    except csv.Error as error:
        raise OrdersError(f"{path} is no CSV file: {error}.") from error


def _check_columns(path: Path, given: set[str]) -> None:
    missing = [name for name in Order.__struct_fields__ if name not in given]
    if missing:
        wanted = ",".join(Order.__struct_fields__)
        raise OrdersError(f"{path} lacks {', '.join(missing)}. Its first line must name: {wanted}")


def _mended(message: str) -> str:
    """Turn msgspec's `Expected ... - at `$.quantity`` into `quantity: Expected ...`."""
    text, _, where = message.partition(" - at `$.")
    return f"{where.rstrip('`')}: {text}" if where else text


def _repeats(orders: list[Order]) -> Iterator[str]:
    seen: set[str] = set()
    for order in orders:
        if order.order in seen:
            yield f"order {order.order} is there twice"
        seen.add(order.order)
