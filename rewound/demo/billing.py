"""The saga of the demo's import: charge every row of a file; if one is bad, all of them or only that one."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, TypedDict

from msgspec import Struct

from rewound import Context, Page, Reactor, Results, fan_out, source, step
from rewound.demo.fees import Fee, pages_of
from rewound.demo.ledger import Ledger

__all__ = ["Bank", "Billing", "ChargeFee", "LenientBilling", "Total"]

IN_FLIGHT: Final = 50
ANSWER: Final = 0.04  # seconds until a bank answers; so that one sees the bar move


class Bank(TypedDict):
    """What the steps work with: the runtime's `state`."""

    book: Ledger


class Total(Struct, frozen=True):
    """What an import came to: how many were charged, how much, and what was refused, row by row."""

    charged: int
    cents: int
    refused: list[str]


class ChargeFee(Reactor[int], name="rewound.demo.ChargeFee"):
    """Charge one subscriber: an element of the import, taken back like a run of its own."""

    fee: Fee

    @step
    def charge(self, ctx: Context[Bank]) -> int:
        """Charge the fee. The same key never charges twice, however often a crash has this run again."""
        cents = self.fee.cents
        time.sleep(ANSWER)
        ctx.state["book"].charge(ctx.idempotency_key, self.fee.subscriber, cents)
        return cents

    @charge.undo
    def refund(self, ctx: Context[Bank]) -> None:
        """Give it back, once: an undo has a key of its own."""
        time.sleep(ANSWER)
        ctx.state["book"].refund(ctx.idempotency_key, self.fee.subscriber)


class Billing(Reactor[Total], name="rewound.demo.Billing"):
    """Charge every row of a file, or nobody."""

    file: str

    @source
    async def rows(self, cursor: int | None) -> AsyncIterator[Page[Fee]]:
        """Read the file page by page; after a crash, go on behind the last page that was stored."""
        done = cursor or 0
        for page in pages_of(Path(self.file), done):
            done += len(page)
            yield Page(page, done)

    charges = fan_out(ChargeFee, over=rows, batch_size=IN_FLIGHT)

    @charges.collect
    async def total(self, charges: Results[int]) -> Total:
        """Add up what was charged, and list what was not."""
        amounts = [cents async for cents in charges]
        errors = [each.error async for each in charges.failures()]
        return Total(len(amounts), sum(amounts), [error.message for error in errors if error])


class LenientBilling(Billing, name="rewound.demo.LenientBilling"):
    """Charge every row that can be charged: a bad one is taken back alone, and told."""

    charges = fan_out(ChargeFee, over="rows", batch_size=IN_FLIGHT, atomic=False)
