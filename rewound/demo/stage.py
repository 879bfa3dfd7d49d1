"""The play: start the world, kill a worker half-way, start another, undo one order, count everything."""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

import anyio
from anyio.abc import Process
from msgspec import Struct
from msgspec import json as msgspec_json

from rewound import Completed, Outcome, Runtime
from rewound.demo.audit import Finding, audit
from rewound.demo.checkout import NAME, Checkout, Shipment, Shop
from rewound.demo.children import DemoError, check, child, first_line
from rewound.demo.client import Payments
from rewound.demo.ledger import Entry, entries
from rewound.demo.orders import Order
from rewound.demo.stock import Stock
from rewound.demo.worker import LEASE, RETENTION, Job, key_of

__all__ = ["Audience", "DemoError", "Report", "Stage"]

LIVE: Final = frozenset({"queued", "running", "paused", "rolling_back"})
SHELF: Final = 50  # pieces of an article that the warehouse has at most
LOOK: Final = 0.15  # seconds between two looks at the runs
PATIENCE: Final = 60.0  # seconds without any progress after which the demo gives up
WORKER: Final = "rewound.demo.worker"


class Audience(Protocol):
    """Whoever is told what goes on."""

    def say(self, text: str) -> None:
        """Hear one line of the story."""
        ...

    def progress(self, counts: Counter[str], total: int) -> None:
        """Hear how many runs have which status."""
        ...


class Report(Struct, frozen=True):
    """What happened.

    Args:
        orders: all of them.
        outcomes: how each one's run ended, by its number.
        entries: the payment service's book.
        findings: what the audit found.
    """

    orders: list[Order]
    outcomes: dict[str, Outcome[Shipment]]
    entries: list[Entry]
    findings: list[Finding]

    @property
    def holds(self) -> bool:
        """Whether everything adds up."""
        return all(finding.holds for finding in self.findings)


class Stage:
    """One run of the demo.

    Args:
        orders: to check out; at least one.
        file: where they were read from.
        store: URL of the storage.
        folder: for the warehouse, the book and the log.
        audience: is told what goes on.
    """

    def __init__(
        self, orders: list[Order], *, file: Path, store: str, folder: Path, audience: Audience
    ) -> None:
        self._orders = orders
        self._file = file
        self._store = store
        self._ledger = folder / "payments.db"
        self._stock = Stock(folder / "stock.db")
        self._log = folder / "demo.log"
        self._audience = audience
        self._batch = secrets.token_hex(4)

    async def play(self) -> Report:
        """Play it all, and return what happened.

        Raises:
            DemoError: a process of the demo ended by itself, or nothing moved for a minute.
        """
        self._stock.fill(levels(self._orders))
        async with child("rewound.demo.payments", str(self._ledger), self._log) as service:
            port = int(await first_line(service, self._log))
            self._audience.say(f"A payment service listens on 127.0.0.1:{port}.")
            await self._work(port)
            return await self._close(port)

    async def _work(self, port: int) -> None:
        """Have the orders worked off by one worker until half is done, and by another one after its death."""
        job = Job(self._store, str(self._file), len(self._orders), self._batch, port, str(self._stock.path))
        argument = msgspec_json.encode(job).decode()
        # This node only looks: it knows no reactor, so it takes no run over.
        async with Runtime(self._store, reactors=[], lease=LEASE) as onlooker:
            async with child(WORKER, argument, self._log) as worker:
                self._audience.say(f"Worker {worker.pid} checks {len(self._orders)} orders out.")
                counts = await self._watch(onlooker, worker, self._is_half_done)
                worker.kill()
            self._audience.say(
                f"Worker {worker.pid} was killed (SIGKILL) with {_live(counts)} orders unfinished."
            )
            async with child(WORKER, argument, self._log) as worker:
                self._audience.say(f"Worker {worker.pid} takes over once the dead one's lease is over.")
                await self._watch(onlooker, worker, self._is_done)

    async def _close(self, port: int) -> Report:
        """Undo one order by hand, and count."""
        shop: Shop = {"stock": self._stock, "payments": Payments(port)}
        async with Runtime(
            self._store, reactors=[Checkout], state=shop, lease=LEASE, retention=RETENTION
        ) as runtime:
            ids = {key: run_id async for key, run_id, _ in self._runs(runtime)}
            outcomes = {order.order: await self._outcome(runtime, ids, order) for order in self._orders}
            for undone in [order for order in self._orders if _is_good(outcomes[order.order])][:1]:
                run_id = ids[key_of(self._batch, undone.order)]
                self._audience.say(f"Order {undone.order} is undone by hand: rewound undo {run_id}")
                await runtime.undo(run_id)
                outcomes[undone.order] = await self._outcome(runtime, ids, undone)
        good = [number for number, outcome in outcomes.items() if _is_good(outcome)]
        book = entries(self._ledger)
        findings = audit(self._orders, good, book, self._stock.parcels(), self._stock.missing())
        return Report(self._orders, outcomes, book, findings)

    async def _outcome(self, runtime: Runtime, ids: dict[str, str], order: Order) -> Outcome[Shipment]:
        run = await runtime.get(ids[key_of(self._batch, order.order)], Checkout)
        return await run.outcome(timeout=PATIENCE)

    async def _runs(self, runtime: Runtime) -> AsyncIterator[tuple[str, str, str]]:
        """Yield key, id and status of this demo's runs."""
        left = len(self._orders)
        async for run in runtime.runs(reactor=NAME):
            if run.key and run.key.startswith(f"{self._batch}/"):
                yield run.key, run.run_id, run.status
                left -= 1
            if not left:
                return

    async def _watch(
        self, runtime: Runtime, worker: Process, until: Callable[[Counter[str]], bool]
    ) -> Counter[str]:
        """Look at the runs until something holds of their statuses; return these."""
        before, changed = Counter[str](), anyio.current_time()
        while True:
            counts = Counter([status async for _, _, status in self._runs(runtime)])
            self._audience.progress(counts, len(self._orders))
            if until(counts):
                return counts
            check(worker, self._log)
            if counts != before:
                before, changed = counts, anyio.current_time()
            elif anyio.current_time() - changed > PATIENCE:
                raise DemoError(f"nothing moved for {PATIENCE:g} seconds; see {self._log}")
            await anyio.sleep(LOOK)

    def _is_half_done(self, counts: Counter[str]) -> bool:
        return counts.total() > 0 and _ended(counts) >= len(self._orders) // 2

    def _is_done(self, counts: Counter[str]) -> bool:
        return _ended(counts) == len(self._orders)


def levels(orders: Iterable[Order]) -> dict[str, int]:
    """Return what the warehouse has: what is ordered, but at most 50 pieces of an article."""
    wanted = Counter[str]()
    for order in orders:
        wanted[order.sku] += order.quantity
    return {sku: min(quantity, SHELF) for sku, quantity in wanted.items()}


def _live(counts: Counter[str]) -> int:
    return sum(counts[status] for status in LIVE)


def _ended(counts: Counter[str]) -> int:
    return counts.total() - _live(counts)


def _is_good(outcome: Outcome[Shipment]) -> bool:
    return isinstance(outcome, Completed)
