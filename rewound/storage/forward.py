"""A storage that passes every call on to another: what wrappers share."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeVar

from anyio.abc import ObjectReceiveStream
from msgspec import UNSET, UnsetType

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
    Storage,
)

__all__ = ["Forward"]

T = TypeVar("T")


class Forward:
    """Passes each call on, through `_call`, the one place where a wrapper can change all of them.

    Args:
        inner: the storage that does the work.
    """

    def __init__(self, inner: Storage) -> None:
        self.inner = inner

    async def _call(self, name: str, operation: Callable[[], Awaitable[T]]) -> T:
        """Carry out one call; `name` is the method's."""
        del name
        return await operation()

    async def open(self) -> None:
        """See `Storage.open`."""
        await self._call("open", self.inner.open)

    async def close(self) -> None:
        """See `Storage.close`. Not through `_call`: whatever a wrapper does, its storage can be closed."""
        await self.inner.close()

    async def now(self) -> float:
        """See `Storage.now`."""
        return await self._call("now", self.inner.now)

    async def identity(self) -> str:
        """See `Storage.identity`."""
        return await self._call("identity", self.inner.identity)

    async def checks(self) -> list[Check]:
        """See `Storage.checks`."""
        return await self._call("checks", self.inner.checks)

    async def join(self, node: str, lease: float) -> None:
        """See `Storage.join`."""
        await self._call("join", partial(self.inner.join, node, lease))

    async def renew(self, node: str, lease: float) -> bool:
        """See `Storage.renew`."""
        return await self._call("renew", partial(self.inner.renew, node, lease))

    async def leave(self, node: str) -> None:
        """See `Storage.leave`."""
        await self._call("leave", partial(self.inner.leave, node))

    async def nodes(self) -> list[Node]:
        """See `Storage.nodes`."""
        return await self._call("nodes", self.inner.nodes)

    async def create(self, new: NewRun, node: str | None) -> Created:
        """See `Storage.create`."""
        return await self._call("create", partial(self.inner.create, new, node))

    async def load(self, run_id: str, start: int = 0, limit: int | None = None) -> Journal | None:
        """See `Storage.load`."""
        return await self._call("load", partial(self.inner.load, run_id, start, limit))

    async def runs(self, query: Query, cursor: str | None = None, limit: int = 50) -> Page:
        """See `Storage.runs`."""
        return await self._call("runs", partial(self.inner.runs, query, cursor, limit))

    async def claim(self, head: Head, node: str, nonce: str) -> Claim | None:
        """See `Storage.claim`."""
        return await self._call("claim", partial(self.inner.claim, head, node, nonce))

    async def append(self, commit: Commit) -> Appended:
        """See `Storage.append`."""
        return await self._call("append", partial(self.inner.append, commit))

    async def release(
        self, claim: Claim, *, retention: float, wake: bool = False, due: float | UnsetType | None = UNSET
    ) -> bool:
        """See `Storage.release`."""
        operation = partial(self.inner.release, claim, retention=retention, wake=wake, due=due)
        return await self._call("release", operation)

    async def acknowledge(self, run_id: str, retention: float) -> bool:
        """See `Storage.acknowledge`."""
        return await self._call("acknowledge", partial(self.inner.acknowledge, run_id, retention))

    async def purge(self, limit: int = 100) -> int:
        """See `Storage.purge`."""
        return await self._call("purge", partial(self.inner.purge, limit))

    async def put(self, cells: Cells) -> int:
        """See `Storage.put`."""
        return await self._call("put", partial(self.inner.put, cells))

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """See `Storage.space`."""
        return await self._call("space", partial(self.inner.space, run_id, space, start, count))

    async def post(self, run_id: str, mail: Mail) -> Head | None:
        """See `Storage.post`."""
        return await self._call("post", partial(self.inner.post, run_id, mail))

    async def mail(self, run_id: str) -> list[Mail]:
        """See `Storage.mail`."""
        return await self._call("mail", partial(self.inner.mail, run_id))

    async def reply(self, mail_id: str) -> bytes | None:
        """See `Storage.reply`."""
        return await self._call("reply", partial(self.inner.reply, mail_id))

    async def attention(
        self, node: str, reactors: frozenset[str], lease: float, cursor: str | None = None, limit: int = 100
    ) -> Attention:
        """See `Storage.attention`."""
        operation = partial(self.inner.attention, node, reactors, lease, cursor, limit)
        return await self._call("attention", operation)

    async def scan(self, cursor: str | None = None, limit: int = 100) -> str | None:
        """See `Storage.scan`."""
        return await self._call("scan", partial(self.inner.scan, cursor, limit))

    def notices(self, node: str) -> AbstractAsyncContextManager[ObjectReceiveStream[Notice]]:
        """See `Storage.notices`."""
        return self.inner.notices(node)

    async def watch(self, run_id: str, node: str) -> Head | None:
        """See `Storage.watch`."""
        return await self._call("watch", partial(self.inner.watch, run_id, node))

    async def unwatch(self, run_id: str, node: str) -> None:
        """See `Storage.unwatch`."""
        await self._call("unwatch", partial(self.inner.unwatch, run_id, node))
