"""What a node offers to the owners that live on it."""

import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter

from rewound.actors import Clock, Slots
from rewound.runtime.settings import Settings
from rewound.runtime.waiters import Waiters
from rewound.storage.protocol import Claim, Storage

if TYPE_CHECKING:
    from rewound.runtime.owners.run_owner import RunOwner

__all__ = ["Services"]


class Services:
    """One node's storage, clock, limits and registers, shared by its owners.

    Args:
        storage: where everything is recorded.
        clock: the node's clock.
        settings: its limits and times.
        state: what the application put on the runtime; bodies see it as `ctx.state`.

    Attributes:
        node: this node's id while it has a lease.
        claims: the claims this node holds, by run id; one without an owner is adopted again.
        owners: the owners that live here, by run id, from their start until they have ended for good.
        context: the context variables of whoever entered the runtime; runs that were taken over see them.
        refusals: why this node's version of a reactor cannot read a run, by run id.
        closing: no step starts any more; owners release their runs as their bodies end.
        offset: the storage's clock minus this node's.
        changed: called with a run's id after each of its commits.
    """

    def __init__(self, storage: Storage, clock: Clock, settings: Settings, state: Any = None) -> None:
        self.storage = storage
        self.clock = clock
        self.settings = settings
        self.state = state
        self.node = ""
        self.claims: dict[str, Claim] = {}
        self.owners: dict[str, RunOwner] = {}
        self.refusals: dict[str, str] = {}
        self.context = contextvars.copy_context()
        self.closing = False
        self.offset = 0.0
        self.slots = Slots(settings.concurrency)
        self.owner_slots = Slots(settings.max_owners)
        self.threads = CapacityLimiter(min(settings.concurrency, 64))
        self.waiters = Waiters()
        self.changed: Callable[[str], None] = self.waiters.notify

    def time(self) -> float:
        """Return the storage's clock, as this node reckons it: unix seconds."""
        return self.clock.time() + self.offset

    def alarm_at(self, due: float) -> float:
        """Convert a time of the storage's clock to the node's monotonic one."""
        return self.clock.now() + due - self.time()
