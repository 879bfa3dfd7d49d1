"""A node's lease: kept alive by one heartbeat, final once it has expired."""

import logging
import secrets

from rewound.errors import StorageError
from rewound.runtime.deadline import within
from rewound.runtime.logs import log_event
from rewound.runtime.owners.services import Services

__all__ = ["Lease"]

MARGIN = 0.9
"""The part of a lease after which a node that could not renew it stops acting on its runs."""


class Lease:
    """Joins under a fresh node id and renews until that fails.

    The local deadline counts from when the last successful renewal was sent, so it is never later than
    storage's own (docs/architecture.md section 4).

    Args:
        services: the node's; its `node` and `offset` are kept up to date here.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._deadline = 0.0
        self._sent = 0.0

    async def join(self) -> None:
        """Take a new node id and start its lease. Raises `StorageError` if storage cannot be reached."""
        services = self._services
        node = secrets.token_hex(8)
        self._sent = services.clock.now()
        await services.storage.join(node, services.settings.lease)
        await self._compare_clocks()
        services.node = node
        self._deadline = self._sent + services.settings.lease * MARGIN

    async def keep(self) -> None:
        """Renew at every third of the lease; return once it is lost."""
        lease, clock = self._services.settings.lease, self._services.clock
        while True:
            await clock.sleep_until(self._sent + lease / 3)
            self._sent = clock.now()
            if not await self._renewed():
                break
            self._deadline = self._sent + lease * MARGIN
        log_event("rewound.claim.fenced", logging.WARNING, node=self._services.node, lease=lease)

    async def _renewed(self) -> bool:
        clock = self._services.clock
        try:
            renewed = await within(clock, self._deadline - clock.now(), self._renew)
        except TimeoutError:
            return False
        return renewed and clock.now() < self._deadline

    async def _renew(self) -> bool:
        services = self._services
        while True:
            try:
                self._sent = services.clock.now()
                renewed = await services.storage.renew(services.node, services.settings.lease)
                await self._compare_clocks()
            except StorageError as error:
                log_event("rewound.claim.heartbeat", logging.WARNING, node=services.node, reason=str(error))
                await services.clock.sleep(services.settings.lease / 20)
            else:
                return renewed

    async def _compare_clocks(self) -> None:
        before = self._services.clock.time()
        theirs = await self._services.storage.now()
        after = self._services.clock.time()
        self._services.offset = theirs - (before + after) / 2
