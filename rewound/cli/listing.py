"""`rewound runs`: what is stored."""

import json
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from rewound import RunSummary, Runtime
from rewound.cli.shared import AsJson, Store, perform

__all__ = ["runs"]

STATUSES: Final = (
    "queued running paused rolling_back completed failed halted cancelled stuck".split()  # noqa: SIM905
)


def runs(
    store: Store,
    status: Annotated[str | None, typer.Option(help=f"One of {', '.join(STATUSES)}.")] = None,
    reactor: Annotated[str | None, typer.Option(help="The reactor's stored name.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: AsJson = False,  # noqa: FBT002  a flag of the command line
) -> None:
    """List runs, newest first."""
    if status is not None and status not in STATUSES:
        raise typer.BadParameter(
            f"{status!r} is no status; one of {', '.join(STATUSES)}", param_hint="--status"
        )

    async def listed() -> int:
        found = await _read(store, status, reactor, limit)
        if as_json:
            typer.echo(json.dumps([msgspec.to_builtins(run) for run in found], indent=2))
        else:
            Console().print(_table(found) if found else "No runs.")
        return 0

    perform(listed)


async def _read(store: str, status: str | None, reactor: str | None, limit: int) -> list[RunSummary]:
    found: list[RunSummary] = []
    # A node without reactors looks and takes nothing over.
    async with Runtime(store, reactors=[]) as runtime:
        async for run in runtime.runs(status=status, reactor=reactor):
            found.append(run)
            if len(found) == limit:
                break
    return found


def _table(found: list[RunSummary]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True, overflow="ignore", min_width=32)  # to copy: never cut short
    for name in ("status", "updated", "reactor", "key"):
        table.add_column(name, overflow="fold")
    for run in found:
        table.add_row(run.run_id, run.status, shown_time(run.updated), run.reactor, run.key or "")
    return table


def shown_time(seconds: float) -> str:
    """Show unix seconds as local time."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
