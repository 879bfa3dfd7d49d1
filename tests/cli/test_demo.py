"""The demo as a whole: real processes, one of them killed, and a count at the end that can come out wrong."""

import json
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from rewound import Cancelled, Completed, Failed, Halted, Outcome, RollbackFailure
from rewound.demo import children, stage
from rewound.demo.checkout import Shipment
from rewound.demo.children import DemoError, check, child, first_line
from rewound.demo.ledger import Entry, Ledger
from rewound.demo.orders import SHIPPED, read_orders
from rewound.demo.payments import DECLINED
from rewound.demo.screen import Screen, described, table_of
from rewound.demo.stage import Report, levels
from tests.cli.conftest import Rewound

LATE = RollbackFailure("charge", "undo", "ServiceError", "no answer")


@pytest.mark.faults
def test_demo_adds_up(rewound: Rewound) -> None:
    """A worker is killed half-way, another one takes over, one order is undone, and everything adds up."""
    result = rewound("demo", "--orders", "15", "--rows", "0")
    assert "was killed (SIGKILL) with" in result.stdout
    assert "is undone by hand" in result.stdout
    assert "15/15" in result.stdout
    assert [line[:3] for line in result.stdout.splitlines()[-5:]] == ["yes"] * 5
    assert result.exit_code == 0


@pytest.mark.faults
def test_demo_notices_a_double_charge(rewound: Rewound, folder: Path) -> None:
    """Money that Rewound knows nothing of is found in the service's book: exit code 1."""
    book = Ledger(folder / "payments.db")
    book.charge("somebody else's", "W-1001", 100)
    book.close()
    result = rewound("demo", "--orders", "2", "--rows", "0", "--keep", str(folder))
    assert "NO   no order was charged twice: not so for W-1001" in result.stdout
    assert result.exit_code == 1


@pytest.mark.faults
def test_demo_shares_a_store_with_others(rewound: Rewound, folder: Path) -> None:
    """Runs of an earlier demo in the store are left alone; if no order is good, none is undone by hand."""
    header, row = SHIPPED.read_text("utf-8").splitlines()[:2]
    (folder / "orders.csv").write_text(f"{header}\n{row.replace(row.split(',')[6], DECLINED)}\n", "utf-8")
    for _ in range(2):
        result = rewound("demo", "--file", "orders.csv", "--rows", "0", "--store", "sqlite:///runs.db")
        assert "1 failed" in result.stdout
        assert "undone by hand" not in result.stdout
        assert result.exit_code == 0
    assert len(json.loads(rewound("runs", "--store", "sqlite:///runs.db", "--json").stdout)) == 2


@pytest.mark.faults
def test_demo_gives_up_when_nothing_moves(rewound: Rewound, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that goes nowhere is told with the log to read, not waited for."""
    monkeypatch.setattr(stage, "PATIENCE", 0.0)
    result = rewound("demo", "--orders", "2")
    assert "rewound: nothing moved for 0 seconds; see" in result.stderr
    assert result.exit_code == 2


def test_demo_refuses_a_bad_file(rewound: Rewound) -> None:
    """A user's file that cannot be used is told in one line."""
    result = rewound("demo", "--file", "none.csv")
    assert result.stderr == f"rewound: {Path('none.csv')} cannot be read: No such file or directory.\n"
    assert result.exit_code == 2


@pytest.mark.anyio
async def test_child_that_dies_is_shown(tmp_path: Path) -> None:
    """A process that ends by itself is told with what it said last."""
    log = tmp_path / "log"
    async with child("rewound.demo.worker", "no job", log) as process:
        with pytest.raises(DemoError, match=r"ended by itself \(1\):[^$]*DecodeError"):
            await first_line(process, log)


@pytest.mark.anyio
async def test_child_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not start is not waited for longer than the limit."""
    monkeypatch.setattr(children, "START", 0.1)
    log = tmp_path / "log"
    async with child("code", "-q", log) as process:
        with pytest.raises(DemoError, match=r"did not start within 0\.1 seconds"):
            await first_line(process, log)
        check(process, log)  # it lives


@pytest.mark.anyio
async def test_child_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that goes on after its input has ended is killed, so that none is left behind."""
    monkeypatch.setattr(children, "GRACE", 0.1)
    async with child("timeit", "import time; time.sleep(600)", tmp_path / "log") as process:
        pass
    assert process.returncode == -9


def test_warehouse_has_what_is_ordered_up_to_a_limit() -> None:
    """Every article is there as often as it is ordered, but an order for hundreds is one too many."""
    filled = levels(read_orders(SHIPPED))
    assert filled["mug-blue"] == 25
    assert max(filled.values()) == 50


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Completed(None), "shipped"),
        (Failed("Declined", "no", "charge", "Checkout"), "charge failed: Declined"),
        (
            Failed("Declined", "no", "ship", "C", rollback_failures=[LATE]),
            "ship failed: Declined (1 rollback failures)",
        ),
        (Cancelled("", undone=True), "shipped, then undone by hand"),
        (Cancelled(""), "cancelled"),
        (Halted("", "ship"), "halted"),
    ],
)
def test_outcomes_are_described(outcome: Completed[None] | Failed | Cancelled | Halted, text: str) -> None:
    """Each way for a run to end has its words, and what could not be undone is never left out."""
    assert described(outcome) == text


def test_table_sums_up_what_happened() -> None:
    """Orders that ended alike are one row, with the money that went to and fro."""
    outcomes: dict[str, Outcome[Shipment]] = {
        number: Completed(Shipment(number, 100)) for number in ("A1", "A2", "A3")
    }
    book = [Entry("k1", "A1", "charge", 100), Entry("k2", "A1", "refund", 40), Entry("k3", "B1", "charge", 1)]
    console = Console(record=True, width=100)
    console.print(table_of(Report([], outcomes, book, [])))
    row = console.export_text().splitlines()[3]
    assert row.replace("│", " ").split() == "3 shipped 1.00 € 0.40 € A1, A2 and 1 more".split()  # noqa: SIM905


def test_bar_counts_what_has_ended() -> None:
    """While runs go on the bar says how many have ended, and which status the others have."""
    console = Console(record=True, width=100)
    with Screen(console) as screen:
        screen.progress(Counter(running=2, rolling_back=1, completed=3), 6)
    assert "3/6" in (text := console.export_text())
    assert "3 completed, 1 rolling back, 2 running" in text
