"""Nodes, their leases, and the server's clock. On a connection of their own: no commit delays them."""

from rewound.storage.protocol import Node
from rewound.storage.redis.index import ServerClock
from rewound.storage.redis.keys import Keys
from rewound.storage.redis.scripts import SCRIPTS, pack
from rewound.storage.redis.wire import Wire

__all__ = ["Leases"]


class Leases:
    """One key per lease, which expires by itself."""

    def __init__(self, wire: Wire, keys: Keys, clock: ServerClock) -> None:
        self._wire = wire
        self._keys = keys
        self._clock = clock

    async def now(self) -> float:
        """Return the server's clock."""
        seconds, micros = await self._wire.send(self._keys.index_tag, pack((b"TIME",)), use="pulse")
        return self._clock.set(int(seconds) + int(micros) / 1e6)

    async def join(self, node: str, lease: float) -> None:
        """Start a node's lease. A node id is used once."""
        keys = self._keys
        call = SCRIPTS["join"].call((keys.lease(node), keys.nodes), node, _milliseconds(lease))
        self._clock.set(await self._wire.send(keys.index_tag, call, use="pulse"))

    async def renew(self, node: str, lease: float) -> bool:
        """Extend the lease, only while it exists."""
        keys = self._keys
        call = SCRIPTS["renew"].call((keys.lease(node),), _milliseconds(lease))
        alive, now = await self._wire.send(keys.index_tag, call, use="pulse")
        self._clock.set(now)
        return bool(alive)

    async def leave(self, node: str) -> None:
        """End a node's lease now. Idempotent."""
        keys = self._keys
        call = SCRIPTS["leave"].call((keys.lease(node), keys.nodes, keys.owner(node)), node)
        await self._wire.send(keys.index_tag, call, use="pulse")

    async def nodes(self) -> list[Node]:
        """List the nodes with a lease, and those without one that may still own runs."""
        keys = self._keys
        call = SCRIPTS["nodes"].call((keys.nodes,), keys.leases, keys.owners)
        now, *rows = await self._wire.send(keys.index_tag, call)
        moment = self._clock.set(now)
        return [Node(node.decode(), moment + left / 1000 if left >= 0 else None) for node, left in rows]


def _milliseconds(seconds: float) -> bytes:
    return b"%d" % max(1, round(seconds * 1000))
