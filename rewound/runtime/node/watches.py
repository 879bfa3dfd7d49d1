"""Runs that somebody here waits for and that live on another node."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio

from rewound.errors import StorageError
from rewound.runtime.deadline import within
from rewound.runtime.logs import log_event
from rewound.runtime.owners.services import Services

__all__ = ["Watches"]


class Watches:
    """Counts who watches which run, and tells storage about the first and the last.

    Args:
        services: the node's.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._counts: dict[str, int] = {}

    @asynccontextmanager
    async def watching(self, run_id: str) -> AsyncGenerator[None]:
        """Have changes of a run reported to this node for the length of the block."""
        self._counts[run_id] = self._counts.get(run_id, 0) + 1
        try:
            if self._counts[run_id] == 1 and self._services.node:  # without a lease: `renew` will do it
                await self._services.storage.watch(run_id, self._services.node)
                # Those who came meanwhile looked before the watch was there, and may have missed the end.
                self._services.waiters.notify(run_id)
            yield
        finally:
            self._counts[run_id] -= 1
            if not self._counts[run_id]:
                del self._counts[run_id]
                await self._unwatch(run_id)

    async def _unwatch(self, run_id: str) -> None:
        """End the watch for a cancelled waiter, too. Left behind, it costs one hint per change of the run."""
        with anyio.CancelScope(shield=True):
            try:
                unwatch = partial(self._services.storage.unwatch, run_id, self._services.node)
                await within(self._services.clock, self._services.settings.lease, unwatch)
            except (StorageError, TimeoutError) as error:
                log_event("rewound.claim.unwatch", logging.WARNING, run=run_id, reason=str(error))

    async def renew(self) -> None:
        """Watch again under a new node id."""
        for run_id in list(self._counts):
            await self._services.storage.watch(run_id, self._services.node)

    def poll(self) -> None:
        """Let the watchers look again: the fallback for hints that were lost."""
        for run_id in self._counts:
            self._services.waiters.notify(run_id)
