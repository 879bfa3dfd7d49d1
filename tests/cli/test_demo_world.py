"""The demo's world: a warehouse and a payment service that may be asked twice, and an audit that notices."""

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec import structs

from rewound import Context
from rewound.demo import payments
from rewound.demo.audit import audit
from rewound.demo.checkout import Checkout, Shop, Undeliverable
from rewound.demo.client import Declined, Payments, ServiceError
from rewound.demo.ledger import Entry, Ledger, Voided, entries
from rewound.demo.orders import Order
from rewound.demo.payments import Bank, Request
from rewound.demo.stock import OutOfStock, Parcel, Stock

GOOD_CARD = "4242424242424242"


@pytest.fixture
def stock(tmp_path: Path) -> Stock:
    """A warehouse with five mugs."""
    warehouse = Stock(tmp_path / "stock.db")
    warehouse.fill({"mug": 5})
    return warehouse


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty book."""
    book = Ledger(tmp_path / "payments.db")
    yield book
    book.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Payments]:
    """A client of a real payment service in a process of its own."""
    command = [sys.executable, "-m", "rewound.demo.payments", str(tmp_path / "payments.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Payments(int(process.stdout.readline()))
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_reserving_twice_takes_once(stock: Stock) -> None:
    """A step that runs again after a crash sets the goods aside only once."""
    stock.reserve("A1", "mug", 2)
    stock.reserve("A1", "mug", 2)
    assert stock.missing() == {"mug": 2}
    assert stock.parcels() == {"A1": Parcel("A1", "mug", 2, "held")}


def test_releasing_twice_gives_back_once(stock: Stock) -> None:
    """An undo that runs again after a crash puts the goods back only once."""
    stock.reserve("A1", "mug", 2)
    stock.release("A1")
    stock.release("A1")
    assert stock.missing() == {"mug": 0}


def test_shipped_goods_are_not_released(stock: Stock) -> None:
    """A parcel has to be recalled before its goods go back to the shelf."""
    stock.reserve("A1", "mug", 2)
    stock.ship("A1")
    stock.release("A1")
    assert stock.missing() == {"mug": 2}
    stock.recall("A1")
    stock.release("A1")
    assert stock.missing() == {"mug": 0}


def test_released_order_can_be_reserved_again(stock: Stock) -> None:
    """A run that is retried takes the goods anew."""
    stock.reserve("A1", "mug", 2)
    stock.release("A1")
    stock.reserve("A1", "mug", 2)
    assert stock.missing() == {"mug": 2}


@pytest.mark.parametrize(("sku", "left"), [("mug", 5), ("kettle", 0)])
def test_shortage_is_refused(stock: Stock, sku: str, left: int) -> None:
    """More than there is cannot be had, and nothing is taken."""
    with pytest.raises(OutOfStock, match=f"6 of {sku} ordered, {left} left"):
        stock.reserve("A1", sku, 6)
    assert stock.missing() == {"mug": 0}


def test_key_charges_once(ledger: Ledger, tmp_path: Path) -> None:
    """The same idempotency key moves money once, whatever the number of requests."""
    assert ledger.charge("k1", "A1", 100) == ledger.charge("k1", "A1", 100)
    ledger.refund("k2", "A1")
    ledger.refund("k2", "A1")
    assert entries(tmp_path / "payments.db") == [
        Entry("k1", "A1", "charge", 100),
        Entry("k2", "A1", "refund", 100),
    ]


def test_book_outlives_the_service(ledger: Ledger, tmp_path: Path) -> None:
    """A service that is started again knows what it booked."""
    ledger.charge("k1", "A1", 100)
    again = Ledger(tmp_path / "payments.db")
    assert again.refund("k2", "A1").cents == 100
    again.close()


def test_voided_order_takes_no_charge(ledger: Ledger) -> None:
    """A charge that was under way when its order was called off is refused."""
    assert ledger.void("k2", "A1").cents == 0
    with pytest.raises(Voided):
        ledger.charge("k1", "A1", 100)


def test_void_gives_back_a_charge_that_was_booked(ledger: Ledger) -> None:
    """A charge whose answer was lost is found by its order and given back, once."""
    ledger.charge("k1", "A1", 100)
    assert ledger.void("k2", "A1") == ledger.void("k2", "A1") == Entry("k2", "A1", "refund", 100)


@pytest.mark.parametrize(
    ("card", "statuses", "late", "booked"),
    [
        (GOOD_CARD, [201, 201], [False, False], 100),
        (payments.DECLINED, [402, 402], [False, False], 0),
        (payments.FLAKY, [503, 201], [False, False], 100),
        (payments.SLOW, [201, 201], [True, False], 100),
        (payments.UNREACHABLE, [201, 201], [True, True], 100),
    ],
)
def test_cards_behave_as_documented(
    ledger: Ledger, card: str, statuses: list[int], late: list[bool], booked: int
) -> None:
    """Some cards are declined, fail once or answer late; whatever they do, one key books once."""
    bank = Bank(ledger)
    answers = [bank.charge("k1", Request("A1", card, 100)) for _ in range(2)]
    assert [status for status, _, _ in answers] == statuses
    assert [delay > 0 for _, _, delay in answers] == late
    assert ledger.refund("k2", "A1").cents == booked


@pytest.mark.anyio
async def test_service_is_reached_over_http(service: Payments) -> None:
    """Charge, refund and void go over a real connection; errors come back as exceptions."""
    await service.charge("A1", GOOD_CARD, 100, key="k1")
    assert await service.refund("A1", key="k2") == 100
    assert await service.void("A1", key="k3") == 0
    with pytest.raises(Declined):
        await service.charge("A2", payments.DECLINED, 100, key="k4")
    with pytest.raises(ServiceError, match="409: the payment of A1 was called off"):
        await service.charge("A1", GOOD_CARD, 100, key="k5")
    with pytest.raises(ServiceError, match="400: Expected `str`"):
        await service.refund(1, key="k6")  # type: ignore[arg-type]
    with pytest.raises(ServiceError, match="400: POST one of /charges, /refunds, /voids with an"):
        await service.charge("A3", GOOD_CARD, 100, key="")


@pytest.mark.anyio
async def test_service_that_is_gone_is_named() -> None:
    """A service that cannot be reached is an error that a retry may mend."""
    with pytest.raises(ServiceError, match="cannot be reached"):
        await Payments(1).charge("A1", GOOD_CARD, 100, key="k1")


def order(number: str) -> Order:
    """An order of two mugs at 5.00."""
    return Order(
        order=number,
        customer="Ada",
        email="ada@example.org",
        sku="mug",
        quantity=2,
        price=Decimal(5),
        card=GOOD_CARD,
        country="DE",
    )


def test_carrier_does_not_go_everywhere(stock: Stock) -> None:
    """An address that nobody delivers to fails the last step, when goods and money are taken already."""
    shop: Shop = {"stock": stock, "payments": Payments(1)}
    checkout = Checkout(order=structs.replace(order("A1"), country="AQ"))
    with pytest.raises(Undeliverable, match="no carrier goes to AQ"):
        checkout.ship(1000, Context(state=shop))


CHARGE = Entry("k1", "A1", "charge", 1000)
REFUND = Entry("k2", "A1", "refund", 1000)
SHIPPED = {"A1": Parcel("A1", "mug", 2, "shipped")}
RELEASED = {"A1": Parcel("A1", "mug", 2, "released")}


@pytest.mark.parametrize(
    ("good", "book", "parcels", "missing", "wrong"),
    [
        (["A1"], [CHARGE], SHIPPED, 2, []),
        ([], [CHARGE, REFUND], RELEASED, 0, []),
        ([], [], {}, 0, []),
        (["A1"], [], SHIPPED, 2, ["money kept", "every order"]),
        ([], [CHARGE], RELEASED, 0, ["money kept", "every order"]),
        (
            ["A1"],
            [CHARGE, Entry("k2", "A2", "charge", -1), Entry("k3", "A2", "charge", 1)],
            SHIPPED,
            2,
            ["no order"],
        ),
        (["A1"], [CHARGE], {}, 2, ["every parcel"]),
        ([], [], {"A1": Parcel("A1", "mug", 2, "held")}, 0, ["every parcel"]),
        (["A1"], [CHARGE], SHIPPED, 4, ["what is gone"]),
    ],
)
def test_audit_notices(
    good: list[str], book: list[Entry], parcels: dict[str, Parcel], missing: int, wrong: list[str]
) -> None:
    """Each kind of loss, of money or goods, is found by at least one check, and only then."""
    findings = audit([order("A1"), order("A2")], good, book, parcels, {"mug": missing})
    found = [finding.name for finding in findings if not finding.holds]
    assert [name[: len(start)] for name, start in zip(found, wrong, strict=True)] == wrong
