"""Reading the demo's orders: every fault of a user's file is named with its place."""

from decimal import Decimal
from pathlib import Path

import pytest

from rewound.demo.orders import SHIPPED, Order, OrdersError, read_orders

HEADER = "order,customer,email,sku,quantity,price,card,country"
ROW = "A1,Ada Novak,ada@example.org,mug,2,12.90,4242424242424242,DE"


def write(folder: Path, *lines: str) -> Path:
    """Write a file of orders."""
    path = folder / "orders.csv"
    path.write_text("\n".join(lines), "utf-8")
    return path


def fault(path: Path) -> str:
    """Return what reading the file complains of."""
    with pytest.raises(OrdersError) as caught:
        read_orders(path)
    return str(caught.value)


def test_shipped_file_is_good() -> None:
    """The file that ships with the package has sixty orders, each of its own number."""
    orders = read_orders(SHIPPED)
    assert len({order.order for order in orders}) == 60


def test_row_becomes_an_order(tmp_path: Path) -> None:
    """Columns are read by name, in any order and case of line ends; further ones are ignored."""
    header = "note,country,card,price,quantity,sku,email,customer,order"
    row = "gift,DE,4242424242424242,12.90,2,mug,ada@example.org,Ada Novak,A1\r"
    assert read_orders(write(tmp_path, header, row)) == [
        Order(
            order="A1",
            customer="Ada Novak",
            email="ada@example.org",
            sku="mug",
            quantity=2,
            price=Decimal("12.90"),
            card="4242424242424242",
            country="DE",
        )
    ]


def test_total_is_exact(tmp_path: Path) -> None:
    """Money is counted in cents, without floating-point error."""
    (order,) = read_orders(write(tmp_path, HEADER, ROW.replace("12.90", "4.35")))
    assert order.cents == 870


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    """A file saved by a spreadsheet begins with a byte order mark."""
    path = tmp_path / "orders.csv"
    path.write_text(f"{HEADER}\n{ROW}", "utf-8-sig")
    assert len(read_orders(path)) == 1


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A path that leads nowhere is an error of one line."""
    assert (
        fault(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'} cannot be read: No such file or directory."
    )


@pytest.mark.parametrize("lines", [(), (HEADER,)])
def test_empty_file_is_refused(tmp_path: Path, lines: tuple[str, ...]) -> None:
    """A file without rows has nothing to show."""
    assert fault(write(tmp_path, *lines)).endswith("has no orders.")


def test_other_encoding_is_refused(tmp_path: Path) -> None:
    """Text that is not UTF-8 is refused rather than garbled."""
    path = tmp_path / "orders.csv"
    path.write_bytes(f"{HEADER}\n{ROW.replace('Ada', 'Zoë')}".encode("latin-1"))
    assert "is not UTF-8 text" in fault(path)


def test_other_format_is_refused(tmp_path: Path) -> None:
    """What the csv module cannot read is no CSV file."""
    assert "is no CSV file" in fault(write(tmp_path, HEADER, '"' + "x" * 200_000))


def test_missing_columns_are_named(tmp_path: Path) -> None:
    """A header without all columns is an error that says which, and which are wanted."""
    message = fault(write(tmp_path, "order,customer", "A1,Ada"))
    assert "lacks email, sku, quantity, price, card, country" in message
    assert message.endswith(HEADER)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (",2,", ",0,", "line 3: quantity: Expected `int` >= 1"),
        (",2,", ",two,", "line 3: quantity: Expected `int`"),
        ("12.90", "0", "line 3: Expected a price above 0"),
        ("12.90", "NaN", "line 3: Expected a price above 0"),
        ("12.90", "1.999", "line 3: Expected a price with at most two decimals"),
        ("12.90", "dear", "line 3: price: Invalid decimal string"),
        ("ada@example.org", "ada", "line 3: email: Expected `str` matching"),
        (",DE", "", "line 3: country: Expected `str` matching"),
    ],
)
def test_bad_value_is_named(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    """A bad row is named by its line in the file, with the column and what was expected."""
    other = ROW.replace("A1", "A2").replace(old, new)
    assert wanted in fault(write(tmp_path, HEADER, ROW, other))


def test_repeated_number_is_refused(tmp_path: Path) -> None:
    """An order number serves as the idempotency key, so it stands in the file once."""
    assert "order A1 is there twice" in fault(write(tmp_path, HEADER, ROW, ROW))


def test_many_faults_are_counted(tmp_path: Path) -> None:
    """Ten faults are listed, the rest is counted."""
    rows = [ROW.replace("A1", f"A{n}").replace(",2,", ",0,") for n in range(12)]
    assert fault(write(tmp_path, HEADER, *rows)).endswith("... and 2 more")
