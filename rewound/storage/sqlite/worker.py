"""A thread that owns one connection, and the way of calls to it and back.

Calls queue up. The thread takes what is queued into one transaction (group commit) and wakes the event
loop once for all answers, on asyncio and trio alike: both let another thread schedule a function.
"""

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from rewound.errors import StorageError
from rewound.storage.hub import Hub
from rewound.storage.protocol import Notice
from rewound.storage.sqlite.job import Job
from rewound.storage.sqlite.poll import Poll
from rewound.storage.sqlite.tables import SqliteTables
from rewound.storage.sqlite.transactions import Transactions

__all__ = ["Worker"]

T = TypeVar("T")

MOST_JOBS = 256
MOST_BYTES = 1 << 20

logger = logging.getLogger("rewound.storage")


def wake_of_this_loop() -> Callable[..., object]:
    """Return the function with which other threads schedule a call in the running event loop."""
    if "trio" in sys.modules:
        from trio.lowlevel import current_trio_token, in_trio_run  # noqa: PLC0415

        if in_trio_run():
            return current_trio_token().run_sync_soon
    return asyncio.get_running_loop().call_soon_threadsafe


class Worker:
    """Runs jobs in a thread of its own, between `start` and `stop`.

    Args:
        name: of the thread.
        hub: gets the notices that jobs sent.
        poll: looks for notices from elsewhere while there is nothing else to do.
    """

    def __init__(self, name: str, hub: Hub, poll: Poll | None = None) -> None:
        self._name, self._hub, self._poll = name, hub, poll
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._urgent: deque[Job[Any]] = deque()
        self._waiting: deque[Job[Any]] = deque()
        self._thread: Thread | None = None
        self._stopping = False
        self._open = False

    # -- in the event loop

    async def start(self, connect: Callable[[], Transactions]) -> None:
        """Start the thread, in which `connect` opens the connection; raise its error."""
        self._wake = wake_of_this_loop()
        ready = Job[None](lambda _: None)
        self._thread = Thread(target=self._main, args=(connect, ready), name=self._name, daemon=True)
        self._thread.start()
        await ready.answer()
        self._open = True

    async def call(
        self,
        act: Callable[[SqliteTables], T],
        *run_ids: str,
        spaces: tuple[tuple[str, str], ...] = (),
        urgent: bool = False,
        size: int = 0,
    ) -> T:
        """Have something done in a transaction, and wait for it."""
        if not self._open:
            raise StorageError("the SQLite storage is not open: enter the runtime that it belongs to")
        job = Job(act, run_ids, spaces=spaces, urgent=urgent, size=size)
        self._queue.put(job)
        return await job.answer()

    async def stop(self) -> None:
        """Finish what is queued, close the connection and end the thread, also if cancelled."""
        self._open = False
        self._queue.put(None)
        if self._thread is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._thread.join)

    def _hand_over(self, jobs: list[Job[Any]], notices: list[tuple[str, Notice]]) -> None:
        for job in jobs:
            job.finish()
        for node, notice in notices:
            self._hub.deliver(node, notice)

    # -- in the thread

    def _main(self, connect: Callable[[], Transactions], ready: Job[None]) -> None:
        try:
            transactions = connect()
        except Exception as error:  # noqa: BLE001
            ready.fail(error)
            self._deliver([ready], [])
            return
        try:
            transactions.run([ready])
            self._deliver([ready], [])
            while self._collect():
                self._turn(transactions)
        finally:
            transactions.connection.close()

    def _collect(self) -> bool:
        """Take what is queued, waiting if there is nothing to do; `False` after the last job."""
        idle = not self._urgent and not self._waiting
        if idle and self._stopping:
            return False
        if idle:
            self._receive(wait=True)
        while not self._queue.empty():
            self._receive(wait=False)
        return True

    def _receive(self, *, wait: bool) -> None:
        try:
            job = self._queue.get(wait, self._poll.timeout if self._poll else None)
        except Empty:
            return
        if job is None:
            self._stopping = True
        else:
            (self._urgent if job.urgent else self._waiting).append(job)

    def _turn(self, transactions: Transactions) -> None:
        """Run one transaction, then look for notices."""
        jobs = self._next_jobs()
        if jobs:
            done, notices = transactions.run(jobs)
            self._waiting.extendleft(reversed(jobs[done:]))
            self._deliver(jobs[:done], notices)
        if self._poll is not None:
            notices = self._poll.look(transactions.connection)
            if notices:
                self._deliver([], notices)

    def _next_jobs(self) -> list[Job[Any]]:
        jobs: list[Job[Any]] = []
        size = 0
        while (self._urgent or self._waiting) and len(jobs) < MOST_JOBS and size < MOST_BYTES:
            job = (self._urgent or self._waiting).popleft()
            if not job.abandoned:
                jobs.append(job)
                size += job.size
        return jobs

    def _deliver(self, jobs: list[Job[Any]], notices: list[tuple[str, Notice]]) -> None:
        try:
            self._wake(self._hand_over, jobs, notices)
        except RuntimeError:
            # The event loop has ended without closing the storage; nobody waits for these answers.
            logger.warning("%s: the event loop ended while the storage was open", self._name)
