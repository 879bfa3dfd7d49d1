"""What the demo shows: the story line by line, a bar while runs go on, and a table at the end."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from rewound import Cancelled, Completed, Failed, Outcome
from rewound.demo.audit import Finding, euros
from rewound.demo.ledger import Entry
from rewound.demo.stage import LIVE, Report

__all__ = ["Screen", "described", "table_of"]


class Screen:
    """The demo's audience at a terminal. Enter it to show the bar.

    Args:
        console: where to print.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing."""
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print one line of the story."""
        self._console.print(text, highlight=False)

    def progress(self, counts: Counter[str], total: int) -> None:
        """Draw how many runs have ended, and how many have which status."""
        ended = sum(count for status, count in counts.items() if status not in LIVE)
        shown = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items()))
        self._draw("runs", ended, total, shown)

    def rows(self, what: str, done: int, total: int | None) -> None:
        """Draw how many rows of an import are done: one bar for each way, forward and back."""
        self._draw(what, done, total, what)

    def _draw(self, name: str, done: int, total: int | None, shown: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task("", total=None)
        self._bar.update(self._tasks[name], completed=done, total=total, description=shown)

    def report(self, report: Report) -> None:
        """Print what happened, and whether it adds up."""
        self._console.print(table_of(report))
        self.findings(report.findings)

    def findings(self, findings: Iterable[Finding]) -> None:
        """Print whether things add up."""
        for finding in findings:
            mark = "[green]yes[/]" if finding.holds else "[bold red]NO [/]"
            self._console.print(f"{mark}  {finding.name}: {finding.figures}", highlight=False, soft_wrap=True)


def table_of(report: Report) -> Table:
    """Return a table with one row for each thing that happened, the most frequent first."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for number, outcome in report.outcomes.items():
        groups[described(outcome)].append(number)
    table = Table()
    table.add_column("orders", justify="right")
    table.add_column("what happened")
    for name in ("charged", "given back"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("which")
    for text, numbers in sorted(groups.items(), key=lambda group: -len(group[1])):
        charged, back = _moved(report.entries, set(numbers))
        table.add_row(str(len(numbers)), text, euros(charged), euros(back), _listed(numbers))
    return table


def described(outcome: Outcome[object]) -> str:
    """Say in a few words how a run ended."""
    match outcome:
        case Completed():
            text = "shipped"
        case Failed(step=step, error=error):
            text = f"{step} failed: {error}"
        case Cancelled(undone=True):
            text = "shipped, then undone by hand"
        case _:
            text = type(outcome).__name__.lower()
    left = len(outcome.rollback_failures)
    return f"{text} ({left} rollback failures)" if left else text


def _moved(entries: list[Entry], numbers: set[str]) -> tuple[int, int]:
    """Return the cents charged and given back for some orders."""
    sums = Counter[str]()
    for entry in entries:
        if entry.order in numbers:
            sums[entry.kind] += entry.cents
    return sums["charge"], sums["refund"]


def _listed(numbers: list[str], most: int = 2) -> str:
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(numbers[:most]) + more
