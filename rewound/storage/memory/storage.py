"""A storage in this process's memory: the same rules as the others, gone with the process."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from uuid import uuid4

from anyio.abc import ObjectReceiveStream
from anyio.lowlevel import checkpoint
from msgspec import UNSET, UnsetType

from rewound.storage import rules, spaces, sweeping
from rewound.storage.hub import Hub
from rewound.storage.memory.tables import MemoryTables
from rewound.storage.protocol import (
    Appended,
    Attention,
    Cells,
    Check,
    Claim,
    Commit,
    Created,
    Head,
    Journal,
    Mail,
    NewRun,
    Node,
    Notice,
    Page,
    Query,
    Space,
)

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """Runs in dicts, for tests and scripts.

    Several runtimes may share one object: each is a node, as it would be on a server. Opening and
    closing change nothing, so the data lives as long as the object. Every call yields to the event
    loop once before it acts, so that tasks interleave as they do with a server.

    Args:
        clock: returns unix seconds; the system's by default.

    Example:
        >>> storage = MemoryStorage()
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._hub = Hub()
        self._tables = MemoryTables(self._hub.deliver)
        self._identity = uuid4().hex

    # -- the backend itself

    async def open(self) -> None:
        """Do nothing: there is nobody to connect to."""
        await checkpoint()

    async def close(self) -> None:
        """Do nothing: another runtime may share this object."""
        await checkpoint()

    async def now(self) -> float:
        """Return the clock's unix seconds."""
        await checkpoint()
        return self._clock()

    async def identity(self) -> str:
        """Return this object's id; it never changes."""
        await checkpoint()
        return self._identity

    async def checks(self) -> list[Check]:
        """Say what memory is; not as a warning, because nobody chooses it by mistake."""
        await checkpoint()
        return [Check("durability", "ok", "runs are kept in memory and end with this process")]

    # -- nodes and their leases

    async def join(self, node: str, lease: float) -> None:
        """Start a node's lease."""
        await checkpoint()
        rules.join(self._tables, node, lease, self._clock())

    async def renew(self, node: str, lease: float) -> bool:
        """Extend a lease that has not expired."""
        await checkpoint()
        return rules.renew(self._tables, node, lease, self._clock())

    async def leave(self, node: str) -> None:
        """End a node's lease."""
        await checkpoint()
        self._tables.set_lease(node, None)

    async def nodes(self) -> list[Node]:
        """List live nodes, and dead ones that still own runs."""
        await checkpoint()
        return rules.nodes(self._tables, self._clock())

    # -- runs

    async def create(self, new: NewRun, node: str | None) -> Created:
        """Create a run if no run has its id."""
        await checkpoint()
        return rules.create(self._tables, new, node, self._clock())

    async def load(self, run_id: str, start: int = 0, limit: int | None = None) -> Journal | None:
        """Read a run's head and records."""
        await checkpoint()
        entry = rules.find(self._tables, run_id, self._clock())
        if entry is None:
            return None
        stop = None if limit is None else start + limit
        return Journal(entry.head(), self._tables.journals[run_id][start:stop])

    async def runs(self, query: Query, cursor: str | None = None, limit: int = 50) -> Page:
        """List heads, newest first."""
        await checkpoint()
        return sweeping.listing(self._tables, query, cursor, limit, self._clock())

    async def claim(self, head: Head, node: str, nonce: str) -> Claim | None:
        """Take a run over."""
        await checkpoint()
        return rules.claim(self._tables, head, node, nonce, self._clock())

    async def append(self, commit: Commit) -> Appended:
        """Write one commit."""
        await checkpoint()
        return rules.append(self._tables, commit, self._clock())

    async def release(
        self, claim: Claim, *, retention: float, wake: bool = False, due: float | UnsetType | None = UNSET
    ) -> bool:
        """Give up a claim."""
        await checkpoint()
        return rules.release(self._tables, claim, rules.Terms(retention, wake, due), self._clock())

    async def acknowledge(self, run_id: str, retention: float) -> bool:
        """Let a retained run expire."""
        await checkpoint()
        return rules.acknowledge(self._tables, run_id, retention, self._clock())

    async def purge(self, limit: int = 100) -> int:
        """Remove expired runs."""
        await checkpoint()
        return sweeping.purge(self._tables, limit, self._clock())

    # -- cells

    async def put(self, cells: Cells) -> int:
        """Write cells and header of a space together."""
        await checkpoint()
        return spaces.put(self._tables, cells, self._clock())

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """Read a space's header and a page of its cells."""
        await checkpoint()
        return spaces.read(self._tables, run_id, space, spaces.page(start, count), self._clock())

    # -- mail

    async def post(self, run_id: str, mail: Mail) -> Head | None:
        """Store mail for a run's owner."""
        await checkpoint()
        return rules.post(self._tables, run_id, mail, self._clock())

    async def mail(self, run_id: str) -> list[Mail]:
        """Read a run's unread mail."""
        await checkpoint()
        return self._tables.mail(run_id)

    async def reply(self, mail_id: str) -> bytes | None:
        """Read a reply."""
        await checkpoint()
        return self._tables.reply(mail_id, self._clock())

    # -- what needs an owner

    async def attention(
        self, node: str, reactors: frozenset[str], lease: float, cursor: str | None = None, limit: int = 100
    ) -> Attention:
        """Find runs that need an owner or a nudge."""
        await checkpoint()
        return sweeping.attention(
            self._tables, sweeping.Sweep(node, reactors, lease, limit), cursor, self._clock()
        )

    async def scan(self, cursor: str | None = None, limit: int = 100) -> str | None:  # noqa: ARG002
        """Return `None`: an index and its run change together here, so nothing can be lost."""
        await checkpoint()
        return None

    # -- notices

    def notices(self, node: str) -> AbstractAsyncContextManager[ObjectReceiveStream[Notice]]:
        """Subscribe to a node's notices."""
        return self._hub.subscribe(node)

    async def watch(self, run_id: str, node: str) -> Head | None:
        """Have the node told of every append to a run."""
        await checkpoint()
        return rules.watch(self._tables, run_id, node, self._clock())

    async def unwatch(self, run_id: str, node: str) -> None:
        """End `watch`."""
        await checkpoint()
        rules.unwatch(self._tables, run_id, node)
