"""What an owner tells itself."""

from collections.abc import Hashable

from rewound.actors import Ref
from rewound.errors import ActorStopped
from rewound.runtime.engine.messages import Tick
from rewound.runtime.owners.letters import OwnerMail, Wake
from rewound.runtime.owners.services import Services

__all__ = ["Signals"]


class Signals:
    """The way to an owner for what works for it: bodies, alarm, slots.

    They hold this and not the owner, so that no cycle keeps an ended run in memory until the garbage
    collector comes by.

    Args:
        services: the node's clock.
    """

    __slots__ = ("_ref", "_services")

    _ref: Ref[OwnerMail]

    def __init__(self, services: Services) -> None:
        self._services = services

    def lead_to(self, ref: Ref[OwnerMail]) -> None:
        """Take the owner's handle, which it gets when it starts: before anything is sent."""
        self._ref = ref

    def send(self, key: Hashable, message: OwnerMail) -> None:
        """Send a message; an owner that is being given up has no use for it: storage has all it needs."""
        try:
            self._ref.signal(key, message)
        except ActorStopped:
            return

    def wake(self) -> None:
        """Tell that there is a slot."""
        self.send("slot", Wake())

    def ring(self) -> None:
        """Tell that the alarm is due."""
        self.send("alarm", Tick(self._services.time()))
