"""The life of a node: join, serve, fence itself when its lease is lost, drain when it is closed."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from rewound.actors import Supervisor
from rewound.errors import ActorStopped, RuntimeClosed, StorageError
from rewound.runtime.deadline import within
from rewound.runtime.declare import Plan
from rewound.runtime.groups import first_in
from rewound.runtime.logs import log_event
from rewound.runtime.node.adoption import Adoption
from rewound.runtime.node.lease import Lease
from rewound.runtime.node.listener import Listener
from rewound.runtime.node.sweeper import Sweeper
from rewound.runtime.node.watchdog import watching
from rewound.runtime.node.watches import Watches
from rewound.runtime.owners.letters import Close
from rewound.runtime.owners.services import Services
from rewound.runtime.waiters import Listener as Listening
from rewound.storage.protocol import Need

__all__ = ["Node", "OpenState"]

LEAST_PATIENCE = 1.0
"""Seconds that cancelled bodies get at least."""

OpenState = Callable[[], AbstractAsyncContextManager[Any]]


class Node:
    """One runtime's membership in the system.

    Args:
        services: what its owners share.
        plans: what it can run, by stored name; may grow.
        open_state: opens what the application put on the runtime.
    """

    chores: TaskGroup
    """What the node does beside its owners; there is none before it serves."""

    def __init__(self, services: Services, plans: Mapping[str, Plan], open_state: OpenState) -> None:
        self.services = services
        self.supervisor = Supervisor(clock=services.clock, on_give_up=self._gave_up, on_end=self._owner_ended)
        self.adoption = Adoption(services, self.supervisor, plans)
        self.watches = Watches(services)
        self.sweeper = Sweeper(services, self.adoption, self.watches, plans)
        self.finished = anyio.Event()
        self.leftovers: list[str] = []
        self._open_state = open_state
        self._online = anyio.Event()
        self._closing = anyio.Event()
        self._owner_ends = anyio.Event()
        self._waiting: set[anyio.CancelScope] = set()
        self._drained = False
        self._dead = ""

    async def serve(self, status: TaskStatus[None]) -> None:
        """Live from the opening of the storage to its closing; the runtime's host task runs this.

        1. Open storage and the application's state, join.
        2. Serve: heartbeat, channel, sweeper. When the lease is lost: drop all owners, join again under
           a new id, and find the dropped runs as anybody's.
        3. When closed: drain, so that other nodes can go on at once; leave; close storage.
        """
        storage = self.services.storage
        await storage.open()
        try:
            await self._warn()
            async with self._open_state() as self.services.state, self.supervisor:
                lease = Lease(self.services)
                await lease.join()
                await self._serve(lease, status)
                await self._leave()
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    await storage.close()
            finally:
                self._finish()

    def close(self) -> None:
        """Begin to close; `finished` is set at the end."""
        self.services.closing = True
        self._closing.set()
        for scope in self._waiting:
            scope.cancel()

    async def room(self) -> None:
        """Wait until the node has a lease and room for one more owner, and take that.

        Between its return and the next `await` the node keeps its lease and id.

        Raises:
            RuntimeClosed: the node closes, or began to while this waited.
        """
        slots = self.services.owner_slots
        if not slots.take():
            await self._unless_closed(slots.acquire)
        try:
            while not self._online.is_set():
                await self._unless_closed(self._online.wait)
            self._check_open()
        except BaseException:
            slots.give()
            raise

    def take_soon(self, need: Need) -> None:
        """See to a run at once, in a task of the node's own."""
        if not self.services.closing:
            self.chores.start_soon(self._take, need)

    async def news_or_poll(self, news: Listening) -> None:
        """Wait for news, but no longer than a quarter of a lease: hints may be lost."""
        with suppress(TimeoutError):
            await within(self.services.clock, self.services.settings.lease / 4, news.wait)

    # -- serving

    async def _serve(self, lease: Lease, status: TaskStatus[None]) -> None:
        async with anyio.create_task_group() as self.chores:
            self._online.set()
            status.started()
            try:
                while not await self._member(lease) and await self._rejoin(lease):
                    self._online.set()
            except Exception as error:
                log_event("rewound.claim.crashed", logging.ERROR, node=self.services.node, exc_info=error)
                raise
            await self._see_off()
            self.chores.cancel_scope.cancel()

    async def _member(self, lease: Lease) -> bool:
        """Serve under one node id; return whether the node was closed (rather than fenced)."""
        listener = Listener(self.services, self.supervisor, self.sweeper.look)
        with watching(self.services):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.run)
                tasks.start_soon(self.sweeper.run)
                tasks.start_soon(self.sweeper.guard_index)
                tasks.start_soon(self._drain_when_closed, tasks)
                await lease.keep()
                self._fence()
                tasks.cancel_scope.cancel()
        return self._drained

    def _fence(self) -> None:
        """Stop acting on runs that another node may claim now, and on behalf of the node that is dead."""
        self._online = anyio.Event()
        self._dead, self.services.node = self.services.node, ""
        self.services.claims.clear()
        for run_id in list(self.services.owners):
            self.supervisor.kill(run_id)

    async def _rejoin(self, lease: Lease) -> bool:
        """Come back under a new id, as soon as storage can be reached; `False` if the node is closed."""
        while not self.services.closing:
            try:
                await self.services.storage.leave(self._dead)
                await lease.join()
                await self.watches.renew()
            except StorageError as error:
                log_event("rewound.claim.rejoin", logging.WARNING, node=self._dead, reason=str(error))
                await self._pause(self.services.settings.lease / 10)
            else:
                return True
        return False

    async def _pause(self, seconds: float) -> None:
        """Wait, but not for a node that is closed."""
        with suppress(TimeoutError):
            await within(self.services.clock, seconds, self._closing.wait)

    def _check_open(self) -> None:
        if self.services.closing:
            raise RuntimeClosed("the runtime is closing; it takes no more work")

    async def _unless_closed(self, wait: Callable[[], Awaitable[object]]) -> None:
        self._check_open()
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                await wait()
            finally:
                self._waiting.discard(scope)
            return
        self._check_open()

    def _gave_up(self, run_id: Any, crash: Exception) -> None:
        error = first_in(crash)
        reason = f"its owner crashed again and again: {type(error).__name__}: {error}"
        self.chores.start_soon(self.adoption.give_up, run_id, reason)

    async def _take(self, need: Need) -> None:
        try:
            await self.adoption.take(need)
        except StorageError as error:  # the sweeper tries again
            log_event("rewound.claim.orphaned", logging.WARNING, run=need.head.run_id, reason=str(error))

    def _owner_ended(self, run_id: Any) -> None:
        self.services.owners.pop(run_id).end()
        self.services.owner_slots.give()
        self._owner_ends.set()

    async def _warn(self) -> None:
        for check in await self.services.storage.checks():
            if check.level != "ok":
                log_event("rewound.claim.storage", logging.WARNING, check=check.name, reason=check.message)

    # -- closing

    @property
    def _patience(self) -> float:
        """Seconds that bodies get to end in, once they were cancelled."""
        return max(self.services.settings.grace, LEAST_PATIENCE)

    async def _drain_when_closed(self, tasks: TaskGroup) -> None:
        await self._closing.wait()
        self._order(Close())
        grace = self.services.settings.grace
        if not (grace and await self._emptied(grace)):
            self._order(Close(now=True))
            await self._emptied(self._patience)
        self._drained = True
        tasks.cancel_scope.cancel()

    def _order(self, order: Close) -> None:
        for owner in list(self.services.owners.values()):
            with suppress(ActorStopped):  # it is ending by itself
                owner.ref.signal("close", order)

    async def _emptied(self, patience: float) -> bool:
        """Wait until no owner is left; return whether that came in time."""
        try:
            await within(self.services.clock, patience, self._all_ended)
        except TimeoutError:
            return False
        return True

    async def _all_ended(self) -> None:
        while self.services.owners:
            self._owner_ends = anyio.Event()
            await self._owner_ends.wait()

    async def _see_off(self) -> None:
        """Leave owners behind whose bodies ignore their cancellation."""
        if not self._drained:
            await self._emptied(self._patience)
        if not self.services.owners:
            return
        self.leftovers = [f"{owner.plan.name} {run_id}" for run_id, owner in self.services.owners.items()]
        log_event(
            "rewound.run.abandoned",
            logging.ERROR,
            runs=self.leftovers,
            reason="a step ignores its cancellation",
        )

    async def _leave(self) -> None:
        node = self.services.node or self._dead
        with anyio.CancelScope(shield=True):
            try:
                leave = partial(self.services.storage.leave, node)
                await within(self.services.clock, self.services.settings.lease, leave)
            except (StorageError, TimeoutError) as error:  # its lease expires by itself
                log_event("rewound.claim.leave", logging.WARNING, node=node, reason=str(error))
            if self.leftovers:  # the supervisor waits for them; whoever closed the runtime does not
                await self.services.storage.close()
                self._finish()

    def _finish(self) -> None:
        self.close()
        self.finished.set()
        self.services.waiters.close()
