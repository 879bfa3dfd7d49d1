"""`rewound runs`: what is stored, as a table or as JSON."""

import json
from pathlib import Path

import anyio
import pytest

from tests.cli.conftest import Rewound, shop_order, shop_runtime

STORE = ("--store", "sqlite:///shop.db")


@pytest.fixture
def stored(folder: Path) -> list[str]:
    """Three runs, the oldest first: two that completed, one that failed."""
    runtime = shop_runtime()
    (folder / "gold").touch()

    async def fill() -> list[str]:
        ids: list[str] = []
        async with runtime:
            for item in ("mug", "kettle", "gold"):
                run = await runtime.spawn(shop_order(item=item), key=f"order-{item}")
                ids.append(run.id)
                await run.outcome()
        return ids

    return anyio.run(fill)


def test_runs_are_listed_newest_first(rewound: Rewound, stored: list[str]) -> None:
    """Each run is a row with its id, reactor, status and key."""
    result = rewound("runs", *STORE)
    assert result.exit_code == 0
    rows = [line for line in result.stdout.splitlines() if "order-" in line]
    assert [row.split()[0] for row in rows] == stored[::-1]
    assert all(word in rows[0] for word in ("Order", "failed", "order-gold"))


def test_runs_are_filtered_and_limited(rewound: Rewound, stored: list[str]) -> None:
    """By status and reactor, and at most so many."""
    result = rewound("runs", *STORE, "--json", "--status", "completed", "--reactor", "Order", "--limit", "1")
    assert [run["run_id"] for run in json.loads(result.stdout)] == [stored[1]]


def test_no_runs_are_told(rewound: Rewound) -> None:
    """An empty store is an answer, not an empty screen."""
    assert rewound("runs", *STORE).stdout == "No runs.\n"


def test_unknown_status_is_refused(rewound: Rewound) -> None:
    """A status that does not exist finds nothing; so it is refused, with those that do."""
    result = rewound("runs", *STORE, "--status", "done")
    assert result.exit_code == 2
    assert "rolling_back" in result.stderr


def test_unknown_store_is_refused(rewound: Rewound) -> None:
    """An error of Rewound's is one line and exit code 2."""
    result = rewound("runs", "--store", "mysql://x")
    assert result.exit_code == 2
    assert result.stderr.startswith("rewound: storage URL with scheme 'mysql' is unknown")


def test_looking_takes_nothing_over(rewound: Rewound, folder: Path) -> None:
    """Listing does not run what waits for an owner: it is no node for that."""
    runtime = shop_runtime()

    async def leave_one() -> None:
        async with runtime:
            await runtime.spawn(shop_order(item="patience"))

    anyio.run(leave_one)
    statuses = [run["status"] for run in json.loads(rewound("runs", *STORE, "--json").stdout)]
    assert statuses == ["running"]
