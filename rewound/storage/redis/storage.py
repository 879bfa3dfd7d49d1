"""Redis or Valkey as storage: the face of the backend, on any event loop."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import anyio
from anyio.abc import ObjectReceiveStream
from msgspec import UNSET, Struct, UnsetType

from rewound.errors import StorageError
from rewound.storage.hub import Hub
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
from rewound.storage.redis.backend import Backend
from rewound.storage.redis.keys import Keys
from rewound.storage.redis.portal import Host, current_host
from rewound.storage.redis.urls import parse_target
from rewound.storage.redis.wire import Settings

__all__ = ["RedisStorage", "open_redis"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Opened(Struct, frozen=True):
    """What is there while a storage is open."""

    host: Host
    backend: Backend


class RedisStorage:
    """Runs in Redis (6.2 or newer) or Valkey: one server, a primary under Sentinel, or a cluster.

    Args:
        url: `redis://`, `rediss://` (TLS), `unix://`, `redis+sentinel://host:port,host:port/service/db`
            or `redis+cluster://host:port`; user name and password as usual. Its query may give `prefix`,
            `patience`, `timeout` and `wait_replicas`, which count more than the arguments.
        prefix: of every key and channel; keeps installations in one database apart.
        patience: seconds for which a call is repeated while the server cannot be reached.
        timeout: seconds that connecting, or one batch of commands, may take before it is tried again.
        wait_replicas: replicas that must have a write before it counts.
        **options: what `redis.asyncio.Connection` takes, such as `ssl_ca_certs` or `credential_provider`.

    Raises:
        StorageConfigError: the URL or an option cannot be used.

    Example:
        >>> storage = RedisStorage("redis://localhost:6379/0", prefix="shop")
    """

    def __init__(
        self,
        url: str = "redis://localhost:6379/0",
        *,
        prefix: str = "rewound",
        patience: float = 30.0,
        timeout: float = 5.0,
        wait_replicas: int = 0,
        **options: Any,
    ) -> None:
        self._target = parse_target(url, options)
        given: dict[str, Any] = {"patience": patience, "timeout": timeout, "wait_replicas": wait_replicas}
        ours: dict[str, Any] = {**given, "prefix": prefix, **self._target.ours}
        self._keys = Keys(ours["prefix"])
        self._settings = Settings(ours["patience"], ours["timeout"], ours["wait_replicas"])
        self._opened: Opened | None = None
        self._hub = Hub()

    def __repr__(self) -> str:
        return f"RedisStorage({self._target.label}, prefix={self._keys.prefix!r})"

    @property
    def _now(self) -> "Opened":
        if self._opened is None:
            raise StorageError(f"the storage {self!r} is not open; call `open` first")
        return self._opened

    @property
    def _backend(self) -> Backend:
        return self._now.backend

    def _run(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> Awaitable[T]:
        return self._now.host.run(function, *args)

    # -- the backend itself

    async def open(self) -> None:
        """Connect and prepare; refuse an unfit server with `StorageConfigError`."""
        if self._opened is not None:
            return
        host, backend = current_host(), Backend(self._target, self._keys, self._settings)
        self._opened = Opened(host, backend)
        try:
            await host.start()
            await host.run(backend.open)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Flush and disconnect, also if cancelled: no connection is left to the garbage. Idempotent."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        self._hub.end()
        with anyio.CancelScope(shield=True):
            try:
                await opened.host.run(opened.backend.close)
            finally:
                await opened.host.stop()

    async def now(self) -> float:
        """Return the server's clock: unix seconds."""
        return await self._run(self._backend.leases.now)

    async def identity(self) -> str:
        """Return an id that changes when the server was restarted or failed over."""
        return await self._run(self._backend.identity)

    async def checks(self) -> list[Check]:
        """Examine the server's settings for `rewound doctor` and the start-up warning."""
        return await self._run(self._backend.checks)

    # -- nodes and their leases

    async def join(self, node: str, lease: float) -> None:
        """Start a node's lease. A node id is used once."""
        await self._run(self._backend.leases.join, node, lease)

    async def renew(self, node: str, lease: float) -> bool:
        """Extend the lease, only while it exists. `False`: it has expired, for good."""
        return await self._run(self._backend.leases.renew, node, lease)

    async def leave(self, node: str) -> None:
        """End a node's lease now. Idempotent."""
        await self._run(self._backend.leases.leave, node)

    async def nodes(self) -> list[Node]:
        """List the nodes with a lease, and those without one that may still own runs."""
        return await self._run(self._backend.leases.nodes)

    # -- runs

    async def create(self, new: NewRun, node: str | None) -> Created:
        """Create the run if no run has its id; claimed by `node`, or by nobody (then it is woken)."""
        return await self._run(self._backend.runs.create, new, node)

    async def load(self, run_id: str, start: int = 0, limit: int | None = None) -> Journal | None:
        """Read the head and the records from `start` on; `None` if there is no such run."""
        return await self._run(self._backend.runs.load, run_id, start, limit)

    async def runs(self, query: Query, cursor: str | None = None, limit: int = 50) -> Page:
        """List heads by status and reactor, newest first, in pages of at most `limit`."""
        return await self._run(self._backend.listing.runs, query, cursor, limit)

    async def claim(self, head: Head, node: str, nonce: str) -> Claim | None:
        """Take the run over, if it has no owner or its owner's lease has expired."""
        return await self._run(self._backend.runs.claim, head, node, nonce)

    async def append(self, commit: Commit) -> Appended:
        """Write one commit. Raises `ClaimLost` or `JournalMismatch`."""
        return await self._run(self._backend.runs.append, commit)

    async def release(
        self, claim: Claim, *, retention: float, wake: bool = False, due: float | UnsetType | None = UNSET
    ) -> bool:
        """Give up a claim; an ended run expires after `retention` again, unless it is retained."""
        return await self._run(
            partial(self._backend.runs.release, claim, retention=retention, wake=wake, due=due)
        )

    async def acknowledge(self, run_id: str, retention: float) -> bool:
        """Let a retained run expire after `retention`. `False` if there is no such ended run."""
        return await self._run(self._backend.runs.acknowledge, run_id, retention)

    async def purge(self, limit: int = 100) -> int:
        """Remove at most `limit` expired runs and what indexes hold of them; return how many."""
        return await self._run(self._backend.upkeep.purge, limit)

    # -- cells

    async def put(self, cells: Cells) -> int:
        """Write cells and header of a space together; return its new version."""
        return await self._run(self._backend.spaces.put, cells)

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """Read a space's header and a page of its cells; `None` if there is no such run."""
        return await self._run(self._backend.spaces.read, run_id, space, start, count)

    # -- mail

    async def post(self, run_id: str, mail: Mail) -> Head | None:
        """Store mail for the run's owner and hint at it; `None` if there is no such run."""
        return await self._run(self._backend.mailroom.post, run_id, mail)

    async def mail(self, run_id: str) -> list[Mail]:
        """Read a run's unread mail, oldest first."""
        return await self._run(self._backend.mailroom.mail, run_id)

    async def reply(self, mail_id: str) -> bytes | None:
        """Read the reply to a piece of mail; it is kept for ten minutes."""
        return await self._run(self._backend.mailroom.reply, mail_id)

    # -- what needs an owner

    async def attention(
        self, node: str, reactors: frozenset[str], lease: float, cursor: str | None = None, limit: int = 100
    ) -> Attention:
        """Find runs of these reactors that need an owner or a nudge, in bounded pages."""
        return await self._run(self._backend.sweeper.attention, node, reactors, lease, cursor, limit)

    async def scan(self, cursor: str | None = None, limit: int = 100) -> str | None:
        """Re-index one page of all runs after a failover that may have lost index entries."""
        return await self._run(self._backend.upkeep.scan, cursor, limit)

    # -- notices

    @asynccontextmanager
    async def notices(self, node: str) -> AsyncGenerator[ObjectReceiveStream[Notice], None]:
        """Subscribe to a node's shared channel: one connection, however many runs and waiters."""
        opened = self._now
        host, backend = opened.host, opened.backend
        async with self._hub.subscribe(node) as stream:
            listener = await host.run(backend.listen, node, host.back(stream.deliver))
            try:
                yield stream
            finally:
                with anyio.CancelScope(shield=True):
                    if self._opened is opened:  # else `close` has stopped it
                        await host.run(backend.stop_listening, listener)

    async def watch(self, run_id: str, node: str) -> Head | None:
        """Have `changed` notices of this run sent to the node; returns the head as it is now."""
        return await self._run(self._backend.mailroom.watch, run_id, node)

    async def unwatch(self, run_id: str, node: str) -> None:
        """End `watch`. Idempotent."""
        await self._run(self._backend.mailroom.unwatch, run_id, node)


def open_redis(url: str, **options: Any) -> RedisStorage:
    """Return the storage at a Redis URL, not yet connected: see `RedisStorage`."""
    return RedisStorage(url, **options)
