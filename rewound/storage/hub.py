"""Notices inside one process: streams by node, fed from the event loop."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ObjectReceiveStream
from anyio.lowlevel import checkpoint

from rewound.storage.protocol import Notice

__all__ = ["Hub", "NoticeStream"]

MOST_PENDING = 10_000
RESET = Notice("reset", "")


class NoticeStream(ObjectReceiveStream[Notice]):
    """The notices of one node that were not received yet, each at most once.

    A reader who is too slow gets a `reset` in place of what he missed.
    """

    def __init__(self) -> None:
        self._pending: dict[Notice, None] = {RESET: None}
        self._arrived = anyio.Event()
        self._ended = False
        self._closed = False

    def deliver(self, notice: Notice) -> None:
        """Add a notice."""
        if len(self._pending) >= MOST_PENDING:
            self._pending.clear()
            notice = RESET
        self._pending[notice] = None
        self._arrived.set()

    def end(self) -> None:
        """Let the reader receive what is there, and then `EndOfStream`."""
        self._ended = True
        self._arrived.set()

    async def receive(self) -> Notice:
        """Wait for the oldest notice."""
        await checkpoint()
        while not self._pending:
            if self._closed:
                raise anyio.ClosedResourceError
            if self._ended:
                raise anyio.EndOfStream
            self._arrived = anyio.Event()
            await self._arrived.wait()
        notice = next(iter(self._pending))
        del self._pending[notice]
        return notice

    async def aclose(self) -> None:
        """Close the stream; a reader that waits gets `ClosedResourceError`."""
        self._closed = True
        self._pending.clear()
        self._arrived.set()


class Hub:
    """The streams of one storage object."""

    def __init__(self) -> None:
        self._streams: dict[str, list[NoticeStream]] = {}

    @property
    def nodes(self) -> list[str]:
        """The nodes that have a stream here."""
        return list(self._streams)

    def deliver(self, node: str, notice: Notice) -> None:
        """Hand a notice to every stream of the node."""
        for stream in self._streams.get(node, ()):
            stream.deliver(notice)

    def end(self) -> None:
        """End every stream."""
        for streams in self._streams.values():
            for stream in streams:
                stream.end()

    @asynccontextmanager
    async def subscribe(self, node: str) -> AsyncGenerator[NoticeStream, None]:
        """Open a stream for the node, closed and forgotten at the end."""
        stream = NoticeStream()
        self._streams.setdefault(node, []).append(stream)
        try:
            yield stream
        finally:
            await stream.aclose()
            self._streams[node].remove(stream)
            if not self._streams[node]:
                del self._streams[node]
