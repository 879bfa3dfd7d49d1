"""`rewound demo`: sixty orders, a worker killed half-way, an import taken back, and the count at the end."""

import logging
import tempfile
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rewound.cli.shared import BAD, perform
from rewound.demo.bulk import Bulk
from rewound.demo.children import DemoError
from rewound.demo.orders import SHIPPED, OrdersError, read_orders
from rewound.demo.screen import Screen
from rewound.demo.stage import Stage

__all__ = ["demo"]

ROWS = 2000


def demo(
    file: Annotated[
        Path,
        typer.Option(help="A CSV file: order,customer,email,sku,quantity,price,card,country."),
    ] = SHIPPED,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Storage to use, such as redis://localhost:6379/0. Default: a new file."
        ),
    ] = None,
    orders: Annotated[int | None, typer.Option(min=1, help="Only so many orders.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows of the import; 0 leaves it out.")] = ROWS,
    keep: Annotated[Path | None, typer.Option(help="Leave the demo's files in this folder.")] = None,
) -> None:
    """Check orders out against a payment service that misbehaves, kill the worker half-way, and count.

    Then import a file with a bad row near the end: all of it is taken back. And again, with atomic=False.

    Exit code 0: money and stock add up, by the payment service's book and the warehouse's file. 1: they do
    not. 2: the demo could not be played.
    """
    # A child that was told to end may still write for a moment; that must not end in a traceback.
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        perform(
            partial(_play, file, store, orders, rows, Path(folder).absolute()),
            OrdersError,
            DemoError,
            TimeoutError,
        )


async def _play(file: Path, store: str | None, limit: int | None, rows: int, folder: Path) -> int:
    orders = read_orders(file)[:limit]
    _log_to(folder)
    url = store or f"sqlite:///{folder / 'runs.db'}"
    with Screen(Console()) as screen:
        report = await Stage(orders, file=file, store=url, folder=folder, audience=screen).play()
    screen.report(report)
    holds = report.holds
    if rows:
        with Screen(Console()) as screen:
            findings = await Bulk(rows, url, folder, screen).play()
        screen.findings(findings)
        holds = holds and all(finding.holds for finding in findings)
    return 0 if holds else BAD


def _log_to(folder: Path) -> None:
    """Have what the runtime logs in this process go to the folder, not over the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=folder / "demo.log", level=logging.INFO, format="%(asctime)s %(message)s")
