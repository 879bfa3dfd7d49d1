"""The sweeper: looks for runs that need an owner, and keeps house."""

import logging
from collections.abc import Mapping
from contextlib import suppress

import anyio

from rewound.errors import StorageError
from rewound.runtime.deadline import within
from rewound.runtime.declare import Plan
from rewound.runtime.logs import log_event
from rewound.runtime.node.adoption import Adoption
from rewound.runtime.node.watches import Watches
from rewound.runtime.owners.services import Services

__all__ = ["Sweeper"]

SCAN_PAUSE = 0.05
"""Seconds between the pages of a scan."""


class Sweeper:
    """Sweeps every quarter of a lease, and at once when told to look.

    Args:
        services: the node's.
        adoption: takes runs over.
        watches: polled as the fallback for lost hints.
        plans: what this node can run, by stored name.
    """

    def __init__(
        self, services: Services, adoption: Adoption, watches: Watches, plans: Mapping[str, Plan]
    ) -> None:
        self._services = services
        self._adoption = adoption
        self._watches = watches
        self._plans = plans
        self._look = anyio.Event()
        self._reported: set[str] = set()
        self._identity: str | None = None

    def look(self) -> None:
        """Sweep at once."""
        self._look.set()

    async def run(self) -> None:
        """Sweep until cancelled. Storage that goes away delays recovery; it drops no run."""
        pause = self._services.settings.lease / 4
        while True:
            self._look = anyio.Event()
            try:
                await self.sweep()
            except StorageError as error:
                log_event("rewound.claim.sweep", logging.WARNING, node=self._services.node, reason=str(error))
            await self._wait(pause)

    async def sweep(self) -> None:
        """Look once at everything that may need this node."""
        await self._adoption.adopt_orphans()
        cursor = None
        while True:
            page = await self._services.storage.attention(
                self._services.node, frozenset(self._plans), self._services.settings.lease, cursor
            )
            for need in page.needs:
                await self._adoption.take(need)
            self._report(page.unknown)
            cursor = page.cursor
            if cursor is None:
                break
        self._watches.poll()
        await self._services.storage.purge()

    def _report(self, unknown: dict[str, int]) -> None:
        """Say once which reactors are left to other nodes (feature A9)."""
        for reactor in sorted(unknown.keys() - self._reported):
            self._reported.add(reactor)
            log_event("rewound.claim.unknown", logging.WARNING, reactor=reactor, runs=unknown[reactor])

    async def guard_index(self) -> None:
        """Look at all runs once after each change of server: a failover may lose an index entry alone.

        Runs until cancelled, beside the sweeps, which a long scan must not hold up.
        """
        while True:
            try:
                await self._scan_after_failover()
            except StorageError as error:  # the server counts as new until a scan came to its end
                log_event("rewound.claim.scan", logging.WARNING, node=self._services.node, reason=str(error))
            await self._services.clock.sleep(self._services.settings.lease / 4)

    async def _scan_after_failover(self) -> None:
        storage = self._services.storage
        identity = await storage.identity()
        if self._identity not in (None, identity):
            log_event("rewound.claim.scan", node=self._services.node, server=identity)
            cursor = await storage.scan()
            while cursor is not None:
                await self._services.clock.sleep(SCAN_PAUSE)
                cursor = await storage.scan(cursor)
            self.look()
        self._identity = identity

    async def _wait(self, pause: float) -> None:
        with suppress(TimeoutError):
            await within(self._services.clock, pause, self._look.wait)
