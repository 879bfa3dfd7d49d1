"""The second act: a file of subscribers is charged with one bad row in it, and taken back; then leniently."""

import secrets
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final, Protocol

import anyio
from msgspec import Struct

from rewound import Completed, Failed, MapProgress, Outcome, Run, Runtime
from rewound.demo.audit import Finding, euros, kept_by_order
from rewound.demo.billing import Bank, Billing, LenientBilling, Total
from rewound.demo.fees import Fee, read_fees, write_fees
from rewound.demo.ledger import Entry, Ledger, entries
from rewound.demo.worker import LEASE, RETENTION

__all__ = ["Bulk", "BulkAudience", "audit_fees"]

LOOK: Final = 0.1  # seconds between two looks at an import
STRICT: Final = "all or nothing"
LENIENT: Final = "atomic=False"
OVER: Final = frozenset({"completed", "failed", "halted", "cancelled", "stuck"})


class BulkAudience(Protocol):
    """Whoever is told what goes on."""

    def say(self, text: str) -> None:
        """Hear one line of the story."""
        ...

    def rows(self, what: str, done: int, total: int | None) -> None:
        """Hear how many rows of how many were charged, or taken back."""
        ...


class Bulk(Struct, frozen=True):
    """One play of the import.

    Args:
        rows: how many, at least one.
        store: URL of the storage.
        folder: for the file and the book.
        audience: is told what goes on.
    """

    rows: int
    store: str
    folder: Path
    audience: BulkAudience

    async def play(self) -> list[Finding]:
        """Import the file twice, and say after each time whether the book adds up."""
        batch = secrets.token_hex(4)
        file, book = self.folder / "fees.csv", self.folder / f"fees-{batch}.db"
        write_fees(file, self.rows)
        fees = list(read_fees(file))
        good = {fee.subscriber for fee in fees if fee.is_good}
        with closing(Ledger(book)) as ledger:
            state: Bank = {"book": ledger}
            async with Runtime(
                self.store, reactors=[Billing, LenientBilling], state=state, lease=LEASE, retention=RETENTION
            ) as runtime:
                self.audience.say(f"{file.name} has {self.rows:,} rows, one of them bad. All or nothing:")
                await self._import(runtime, Billing(file=str(file)), f"{batch}/strict", STRICT)
                findings = audit_fees(STRICT, fees, set(), entries(book))
                self.audience.say("The same with atomic=False:")
                await self._import(runtime, LenientBilling(file=str(file)), f"{batch}/lenient", LENIENT)
                return findings + audit_fees(LENIENT, fees, good, entries(book))

    async def _import(self, runtime: Runtime, billing: Billing, key: str, title: str) -> None:
        run = await runtime.spawn(billing, key=key)
        self.tell(await self._watched(run, title))

    async def _watched(self, run: Run[Total], title: str) -> Outcome[Total]:
        """Look at an import until it has ended."""
        over = False
        while not over:
            over = await run.status() in OVER
            for progress in (await run.maps()).values():
                self._show(title, progress)
            if not over:
                await anyio.sleep(LOOK)
        return await run.outcome()

    def _show(self, title: str, progress: MapProgress) -> None:
        self.audience.rows(f"{title}: charged", progress.settled, progress.total)
        if back := progress.rollback:
            self.audience.rows(f"{title}: taken back", back.settled, back.total)

    def tell(self, outcome: Outcome[Total]) -> None:
        """Say how an import ended."""
        match outcome:
            case Completed(Total(charged, cents, refused)):
                bad = "".join(f" Refused: {row}." for row in refused)
                self.audience.say(f"{charged:,} charged, {euros(cents)}.{bad}")
            case Failed(message=message):
                left = len(outcome.rollback_failures)
                self.audience.say(f"It failed: {message}. Rollback failures: {left}.")
            case _:
                self.audience.say(f"It ended unexpectedly: {outcome}")


def audit_fees(title: str, fees: Iterable[Fee], good: set[str], book: Iterable[Entry]) -> list[Finding]:
    """Compare the book with the file.

    Args:
        title: which import it is about.
        fees: the rows of the file.
        good: the subscribers who should be charged.
        book: every entry that was made.
    """
    due = {fee.subscriber: fee.cents if fee.subscriber in good else 0 for fee in fees}
    kept = kept_by_order(book)
    wrong = [who for who in {**due, **kept} if due.get(who, 0) != kept.get(who, 0)]
    should, are = sum(due.values()), sum(kept.values())
    return [
        Finding(f"{title}: the book adds up", should == are, f"{euros(are)} kept, {euros(should)} due"),
        Finding(f"{title}: each row is charged in full or not at all", not wrong, _listed(wrong)),
    ]


def _listed(wrong: list[str]) -> str:
    return f"not so for {', '.join(wrong[:5])}" if wrong else "all of them"
