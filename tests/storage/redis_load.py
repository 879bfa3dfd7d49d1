"""Writers that must not lose or repeat a record, and a network that breaks between them and Redis."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import SocketAttribute, SocketStream

from rewound.storage import Claim, Commit, Storage
from tests.storage.stores import LEASE, new_run

__all__ = ["Load", "Proxy", "loaded"]


class Load:
    """Runs that are appended to without pause, each by one writer."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.written: dict[str, int] = {}
        self._stopping = False
        self._moved = anyio.Event()

    async def progress(self, records: int) -> None:
        """Wait until so many further records were acknowledged."""
        goal = self.total + records
        while self.total < goal:
            self._moved = anyio.Event()
            await self._moved.wait()

    @property
    def total(self) -> int:
        """Records that were acknowledged."""
        return sum(self.written.values())

    def stop(self) -> None:
        """Let every writer finish its append."""
        self._stopping = True

    async def write(self, claim: Claim) -> None:
        """Append numbered records. A record that was stored twice, or lost, fails the next append."""
        self.written[claim.run_id] = 0
        while not self._stopping:
            number = self.written[claim.run_id]
            await self.storage.append(Commit(claim, f"{claim.run_id}-{number}", number + 1, [b"%d" % number]))
            self.written[claim.run_id] = number + 1
            self._moved.set()

    async def verify(self) -> None:
        """Every acknowledged record is there, in order, once."""
        for run_id, number in self.written.items():
            journal = await self.storage.load(run_id)
            assert journal is not None
            assert journal.records == [b"0", *(b"%d" % each for each in range(number))]


@asynccontextmanager
async def loaded(storage: Storage, runs: int = 8) -> AsyncGenerator[Load, None]:
    """Write to some runs during a block, and verify them at its end."""
    load = Load(storage)
    await storage.join("a", LEASE)
    async with anyio.create_task_group() as writers:
        for number in range(runs):
            created = await storage.create(new_run(f"run{number}"), "a")
            assert created.claim is not None
            writers.start_soon(load.write, created.claim)
        yield load
        load.stop()
    await load.verify()


class Proxy:
    """Stands between client and server, and can cut the line.

    `cut_replies`: how many times the line is cut after the server has done what it was asked to, and
    before the client learns of it. `lines` and `requests` count connections and what came over them.
    """

    def __init__(self, port: int) -> None:
        self.port = 0
        self.cut_replies = 0
        self.lines = 0
        self.requests = 0
        self._server_port = port
        self._muted = 0
        self._asked = anyio.Event()

    async def asked(self, times: int) -> None:
        """Wait for so many further requests."""
        goal = self.requests + times
        while self.requests < goal:
            self._asked = anyio.Event()
            await self._asked.wait()

    def mute(self) -> None:
        """Let no reply through any more on the lines that exist, and leave them open."""
        self._muted = self.lines

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Proxy", None]:
        """Serve on a free port during a block."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # this is not Django's
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._serve)
            yield self
            tasks.cancel_scope.cancel()

    async def _serve(self, client: SocketStream) -> None:
        self.lines += 1
        line = self.lines
        async with (
            client,
            await anyio.connect_tcp("127.0.0.1", self._server_port) as server,
            anyio.create_task_group() as directions,
        ):
            directions.start_soon(self._pass_requests, client, server, directions.cancel_scope)
            directions.start_soon(self._pass_replies, server, client, directions.cancel_scope, line)

    async def _pass_requests(
        self, client: SocketStream, server: SocketStream, both: anyio.CancelScope
    ) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in client:
                self.requests += 1
                self._asked.set()
                await server.send(chunk)
        both.cancel()

    async def _pass_replies(
        self, server: SocketStream, client: SocketStream, both: anyio.CancelScope, line: int
    ) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in server:
                if line > self._muted:
                    if self.cut_replies:
                        self.cut_replies -= 1
                        break
                    await client.send(chunk)
        both.cancel()
