"""`rewound show`: one run, step by step and event by event."""

import json
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewound import RunEvent, RunSummary, Runtime
from rewound.cli.listing import shown_time
from rewound.cli.shared import AsJson, Store, perform

__all__ = ["show", "states_of"]

# What a step has come to by its newest event; handlers' events are told apart by their kind. Events of other
# families (`child.ended`, `map.settled`) tell more of a step and leave its state to these.
STATES: Final = {
    "step.started": "running",
    "step.succeeded": "done",
    "step.skipped": "skipped",
    "step.failed": "failed",
    "step.retrying": "waits for a retry",
    "step.halted": "halted the run",
    "step.cut": "cut off",
    "rollback.opened": "rolling back",
    "rollback.settled undo": "undone",
    "rollback.settled undo_all": "undone",
    "rollback.settled compensate": "compensated",
    "rollback.failed undo": "UNDO FAILED",
    "rollback.failed undo_all": "UNDO FAILED",
    "rollback.failed compensate": "COMPENSATE FAILED",
    "rollback.retrying undo": "undo waits for a retry",
    "rollback.retrying undo_all": "undo waits for a retry",
    "rollback.retrying compensate": "compensate waits for a retry",
}


def show(
    run_id: Annotated[str, typer.Argument(metavar="ID", help="The run's id.")],
    store: Store,
    as_json: AsJson = False,  # noqa: FBT002  a flag of the command line
) -> None:
    """Show a run: its status, what each step has come to, and every event, the rollback's order included."""

    async def shown() -> int:
        # A node without reactors looks and takes nothing over.
        async with Runtime(store, reactors=[]) as runtime:
            summary, events = await runtime.history(run_id)
        if as_json:
            found = {"run": msgspec.to_builtins(summary), "events": msgspec.to_builtins(events)}
            typer.echo(json.dumps(found, indent=2))
        else:
            _print(summary, events)
        return 0

    perform(shown)


def states_of(events: list[RunEvent]) -> dict[str, str]:
    """Return what each step has come to, in the order in which they began."""
    states: dict[str, str] = {}
    for event in events:
        if event.step is not None and event.name.startswith(("step.", "rollback.")):
            kind = event.detail.get("kind")
            name = f"{event.name} {kind}" if kind else event.name
            states[event.step] = STATES.get(name, event.name)
    return states


def _print(summary: RunSummary, events: list[RunEvent]) -> None:
    console = Console(highlight=False)
    key = f", key {summary.key}" if summary.key else ""
    console.print(f"{summary.reactor} {summary.run_id}{key}: {summary.status}", soft_wrap=True, markup=False)
    for table in (_steps(events), _events(events)):
        console.print()
        console.print(table)


def _steps(events: list[RunEvent]) -> Table:
    table = Table("step", "state", box=None, pad_edge=False)
    for step, state in states_of(events).items():
        table.add_row(step, state)
    return table


def _events(events: list[RunEvent]) -> Table:
    table = Table("time", "event", "step", "detail", box=None, pad_edge=False)
    for event in events:
        detail = ", ".join(
            f"{name} {value}" for name, value in event.detail.items() if value not in (None, "")
        )
        table.add_row(shown_time(event.at), event.name, event.step or "", Text(detail))
    return table
