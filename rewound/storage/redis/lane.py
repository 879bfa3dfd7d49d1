"""Group commit: one connection, one task, and requests that leave together.

A request that comes while a batch is on the wire waits for the next batch. That is where the throughput
comes from: a hundred callers cost one write and one read of the socket, not a hundred.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from redis.exceptions import AskError, RedisError, ResponseError

from rewound.storage.redis.failures import DISCONNECTED, Remedy, remedy_for
from rewound.storage.redis.links import Dial, Link, read, teach
from rewound.storage.redis.requests import Request
from rewound.storage.redis.scripts import pack

__all__ = ["Lane"]

MOST_RECORDS = 256
MOST_BYTES = 1 << 20
FIRST_DELAY, LAST_DELAY = 0.05, 0.5
MOST_HOPS = 5
SILENCE = "it did not answer in time"
ASKING = pack((b"ASKING",))


class Lane:
    """Requests to one server over one connection.

    Its task, in a loop:

    1.  Wait for a request.
    2.  Connect, if there is no connection, and teach the server the scripts.
    3.  Take requests, in order, up to 256 records or 1 MiB. Drop those nobody waits for any more.
    4.  Send them together and read one reply for each. Whoever waits gets his reply at once.
    5.  Put what must be repeated in front of the queue, in order; wait, longer each time.
    6.  Fail the requests whose patience has ended, and let `reroute` move the rest.

    Args:
        name: of the server, for messages.
        dial: returns a fresh connection.
        timeout: seconds that a batch, or connecting, may take.
        replicas: how many of them must have a batch before it is answered.
        redirect: sends a request to the node that an answer points to.
        reroute: called after trouble; may `drain` this lane into others.
    """

    def __init__(
        self,
        name: str,
        dial: Dial,
        timeout: float,
        *,
        replicas: int = 0,
        redirect: Callable[[Request, AskError], None] | None = None,
        reroute: Callable[["Lane"], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._dial = dial
        self._timeout = timeout
        self._replicas = replicas
        self._redirect = redirect
        self._reroute = reroute
        self._queue: deque[Request] = deque()
        self._sent: deque[Request] = deque()
        self._again: list[Request] = []
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._link: Link | None = None
        self._taught = False
        self._failures = 0
        self._reason = SILENCE
        self._answered = False
        self._task = asyncio.create_task(self._run(), name=f"rewound: redis {name}")
        self._task.add_done_callback(self._end)

    def submit(self, request: Request) -> None:
        """Queue a request; it leaves with the next batch."""
        self._queue.append(request)
        self._filled.set()
        if self._task.done():
            self._end(self._task)

    def drain(self) -> list[Request]:
        """Take away everything that waits."""
        waiting = list(self._queue)
        self._queue.clear()
        return waiting

    async def close(self, patience: float) -> None:
        """Send what is queued, if that takes at most `patience` seconds; then disconnect."""
        self._filled.set()
        self._emptied.clear()
        emptied = asyncio.ensure_future(self._emptied.wait())
        await asyncio.wait([emptied, self._task], timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        emptied.cancel()
        self._task.cancel()
        await asyncio.wait([self._task])
        if self._link is not None:
            await self._link.disconnect()

    def _end(self, task: "asyncio.Task[None]") -> None:
        """Leave nobody waiting for a task that has ended."""
        error = None if task.cancelled() else task.exception()
        why = "the storage was closed before it answered" if error is None else f"its lane broke: {error!r}"
        for request in (*self._again, *self._sent, *self.drain()):
            request.fail(f"Redis at {self.name}: {why}")

    async def _run(self) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._queue:
                await self._step()
            self._emptied.set()

    async def _step(self) -> None:
        trouble: Exception | None
        try:
            async with asyncio.timeout(self._allowance()):
                link = await self._connected()
                self._take()
                trouble = await self._exchange(link)
        except DISCONNECTED as error:
            await self._drop()
            trouble = error
        if trouble is not None:
            await self._recover(trouble)
        elif self._answered:
            self._failures, self._reason = 0, SILENCE

    def _allowance(self) -> float:
        """Give the server its time, but no more than the oldest request has left."""
        oldest = (self._sent or self._queue)[0]
        left = oldest.give_up - asyncio.get_running_loop().time()
        return min(self._timeout, max(left, FIRST_DELAY))

    async def _connected(self) -> Link:
        if self._link is None:
            self._link = await self._dial()
            self._taught = False
        if not self._taught:
            await teach(self._link)
            self._taught = True
        return self._link

    async def _drop(self) -> None:
        if self._link is not None:
            await self._link.disconnect(nowait=True)
            self._link = None

    def _take(self) -> None:
        records = size = 0
        while self._queue and records < MOST_RECORDS and size < MOST_BYTES:
            request = self._queue.popleft()
            if not request.future.done():
                self._sent.append(request)
                records += request.weight
                size += len(request.packed)

    async def _exchange(self, link: Link) -> Exception | None:
        """Send a batch and read its replies; return the last error that can be remedied."""
        self._answered = False
        if not self._sent:
            return None
        await link.send_packed_command(b"".join(self._words()), check_health=False)
        if self._replicas:
            return await self._exchange_safely(link)
        trouble = None
        while self._sent:
            reply = await _read_for(link, self._sent[0])
            trouble = self._settle(self._sent.popleft(), reply) or trouble
        return trouble

    async def _exchange_safely(self, link: Link) -> Exception | None:
        """Tell nobody before the replicas have it. If they have not, the whole batch is repeated."""
        replies = [await _read_for(link, request) for request in self._sent]
        await read(link)
        reached = await read(link)
        if not isinstance(reached, int) or reached < self._replicas:
            return ResponseError(f"NOREPLICAS {reached} of {self._replicas} replicas have the write")
        trouble = None
        for reply in replies:
            trouble = self._settle(self._sent.popleft(), reply) or trouble
        return trouble

    def _words(self) -> list[bytes]:
        words = [ASKING + sent.packed if sent.asking else sent.packed for sent in self._sent]
        if self._sent and self._replicas:
            # WAIT counts from this connection's last write; a repeat that changes nothing is none.
            mark = b"{%b}:wait" % self._sent[0].tag
            words.append(pack((b"SET", mark, b"1", b"PX", b"1000")))
            words.append(pack((b"WAIT", b"%d" % self._replicas, b"%d" % (self._allowance() * 500))))
        return words

    def _settle(self, request: Request, reply: Any) -> Exception | None:
        """Answer a request, or see to it that it is repeated; return the error if so."""
        if not isinstance(reply, RedisError):
            request.answer(reply)
            self._answered = True
            return None
        remedy = remedy_for(reply)
        if isinstance(reply, AskError):
            return self._send_on(request, reply)
        if remedy is Remedy.REFUSE:
            request.fail(f"Redis at {self.name} refused a command: {reply}")
            return None
        self._taught = self._taught and remedy is not Remedy.TEACH
        self._again.append(request)
        return reply

    def _send_on(self, request: Request, error: AskError) -> Exception | None:
        if self._redirect is None:
            request.fail(f"Redis at {self.name} is part of a cluster; use a redis+cluster:// URL")
            return None
        request.hops += 1
        if request.hops % MOST_HOPS == 0:
            self._again.append(request)
            return error
        self._redirect(request, error)
        return None

    async def _recover(self, trouble: Exception) -> None:
        if remedy_for(trouble) is Remedy.RECONNECT:
            await self._drop()
        self._queue.extendleft(reversed((*self._again, *self._sent)))
        self._again.clear()
        self._sent.clear()
        if self._failures:
            delay = min(LAST_DELAY, FIRST_DELAY * 2 ** (self._failures - 1))
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311  # spreads load, guards nothing
        self._failures += 1
        self._reason = str(trouble) or self._reason
        self._expire()
        if self._reroute is not None and self._queue:
            await self._reroute(self)

    def _expire(self) -> None:
        now = asyncio.get_running_loop().time()
        patient: deque[Request] = deque()
        for request in self._queue:
            if request.give_up > now:
                patient.append(request)
            else:
                request.fail(
                    f"Redis at {self.name} gave no good answer for {request.patience:g} s "
                    f"({self._reason}); check that it runs and can be reached"
                )
        self._queue = patient


async def _read_for(link: Link, request: Request) -> Any:
    if request.asking:
        await read(link)
    return await read(link)
