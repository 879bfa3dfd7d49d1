"""A node's one subscription: hints become signals to owners and news for waiters."""

import logging
from collections.abc import Callable
from contextlib import suppress

from rewound.actors import Supervisor
from rewound.errors import ActorStopped, StorageError
from rewound.runtime.logs import log_event
from rewound.runtime.owners.letters import ReadMail
from rewound.runtime.owners.services import Services
from rewound.storage.protocol import Notice

__all__ = ["Listener"]


class Listener:
    """Reads the shared channel of a node for as long as its lease lasts.

    Args:
        services: the node's.
        supervisor: finds owners.
        look: makes the sweeper look at once.
    """

    def __init__(self, services: Services, supervisor: Supervisor, look: Callable[[], None]) -> None:
        self._services = services
        self._supervisor = supervisor
        self._look = look

    async def run(self) -> None:
        """Listen until cancelled; a channel that breaks is opened again, and everything looked at once."""
        services = self._services
        while True:
            try:
                async with services.storage.notices(services.node) as stream:
                    async for notice in stream:
                        self._take(notice)
            except StorageError as error:
                log_event("rewound.claim.channel", logging.WARNING, node=services.node, reason=str(error))
            await services.clock.sleep(services.settings.lease / 10)

    def _take(self, notice: Notice) -> None:
        match notice.kind:
            case "mail":
                self._tell_owner(notice.id)
            case "reset":
                self._services.waiters.notify_all()
                self._look()
            case _:
                self._services.waiters.notify(notice.id)

    def _tell_owner(self, run_id: str) -> None:
        owner = self._supervisor.find(run_id)
        with suppress(ActorStopped):  # it is ending
            if owner is not None:
                owner.signal("mail", ReadMail())
                return
        self._look()
