"""The life of a node: join, serve, fence itself when its lease is lost, drain when it is closed."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from rewound.actors import Supervisor
from rewound.errors import ActorStopped, StorageError
from rewound.runtime.deadline import within
from rewound.runtime.declare import Plan
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

OpenState = Callable[[], AbstractAsyncContextManager[Any]]


class Node:
    """One runtime's membership in the system.

    Args:
        services: what its owners share.
        plans: what it can run, by stored name; may grow.
        open_state: opens what the application put on the runtime.
    """

    def __init__(self, services: Services, plans: Mapping[str, Plan], open_state: OpenState) -> None:
        self.services = services
        self.supervisor = Supervisor(clock=services.clock, on_give_up=self._gave_up, on_end=self._owner_ended)
        self.adoption = Adoption(services, self.supervisor, plans)
        self.watches = Watches(services)
        self.sweeper = Sweeper(services, self.adoption, self.watches, plans)
        self.finished = anyio.Event()
        self.leftovers: list[str] = []
        self.chores: TaskGroup | None = None
        self._open_state = open_state
        self._online = anyio.Event()
        self._closing = anyio.Event()
        self._owner_ends = anyio.Event()

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
                async with anyio.create_task_group() as self.chores:
                    await self._serve(status)
                    self.chores.cancel_scope.cancel()
                await self._leave()
        finally:
            with anyio.CancelScope(shield=True):
                await storage.close()
            self.finished.set()

    def close(self) -> None:
        """Begin to close; `finished` is set at the end."""
        self.services.closing = True
        self._closing.set()

    async def online(self) -> None:
        """Wait until the node has a lease."""
        while not self._online.is_set():
            await self._online.wait()

    def take_soon(self, need: Need) -> None:
        """See to a run at once, in a task of the node's own."""
        if self.chores is not None:
            self.chores.start_soon(self._take, need)

    async def news_or_poll(self, news: Listening) -> None:
        """Wait for news, but no longer than a quarter of a lease: hints may be lost."""
        with suppress(TimeoutError):
            await within(self.services.clock, self.services.settings.lease / 4, news.wait)

    # -- serving

    async def _serve(self, status: TaskStatus[None]) -> None:
        lease = Lease(self.services)
        await lease.join()
        self._online.set()
        status.started()
        while not await self._member(lease):
            self._online = anyio.Event()
            self._drop_owners()
            await self._rejoin(lease)
            self._online.set()

    async def _member(self, lease: Lease) -> bool:
        """Serve under one node id; return whether the node was closed (rather than fenced)."""
        listener = Listener(self.services, self.supervisor, self.sweeper.look)
        with watching(self.services):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.run)
                tasks.start_soon(self.sweeper.run)
                tasks.start_soon(self._drain_when_closed, tasks)
                await lease.keep()
                tasks.cancel_scope.cancel()
        return bool(self._closing.is_set())

    def _drop_owners(self) -> None:
        """Stop acting on runs that another node may claim now."""
        for run_id in list(self.services.owners):
            self.supervisor.kill(run_id)
        self.services.claims.clear()

    async def _rejoin(self, lease: Lease) -> None:
        dead = self.services.node
        while True:
            try:
                await self.services.storage.leave(dead)
                await lease.join()
                await self.watches.renew()
            except StorageError as error:
                log_event("rewound.claim.rejoin", logging.WARNING, node=dead, reason=str(error))
                await self.services.clock.sleep(self.services.settings.lease / 10)
            else:
                return

    def _gave_up(self, run_id: Any, crash: Exception) -> None:
        if self.chores is not None:
            reason = f"its owner crashed again and again: {type(crash).__name__}: {crash}"
            self.chores.start_soon(self._park, run_id, reason)

    async def _park(self, run_id: str, reason: str) -> None:
        try:
            await self.adoption.park(run_id, reason)
        except StorageError as error:
            log_event("rewound.claim.orphaned", logging.WARNING, run=run_id, reason=str(error))

    async def _take(self, need: Need) -> None:
        try:
            await self.adoption.take(need)
        except StorageError as error:  # the sweeper tries again
            log_event("rewound.claim.orphaned", logging.WARNING, run=need.head.run_id, reason=str(error))

    def _owner_ended(self, _run_id: Any) -> None:
        self.services.owner_slots.give()
        self._owner_ends.set()

    async def _warn(self) -> None:
        for check in await self.services.storage.checks():
            if check.level != "ok":
                log_event("rewound.claim.storage", logging.WARNING, check=check.name, reason=check.message)

    # -- closing

    async def _drain_when_closed(self, tasks: TaskGroup) -> None:
        await self._closing.wait()
        grace = self.services.settings.grace
        if not await self._drained(Close(), grace) and not await self._drained(
            Close(now=True), max(grace, 1.0)
        ):
            self.leftovers = list(self.services.owners)
            bodies = [f"{owner.plan.name} {run_id}" for run_id, owner in self.services.owners.items()]
            log_event(
                "rewound.run.abandoned", logging.ERROR, runs=bodies, reason="a step ignores its cancellation"
            )
        tasks.cancel_scope.cancel()

    async def _drained(self, order: Close, grace: float) -> bool:
        for run_id in list(self.services.owners):
            self._tell(run_id, order)
        try:
            await within(self.services.clock, grace, self._all_ended)
        except TimeoutError:
            return False
        return True

    def _tell(self, run_id: str, order: Close) -> None:
        ref = self.supervisor.find(run_id)
        if ref is not None:
            try:
                ref.signal("close", order)
            except ActorStopped:
                return  # it is ending by itself

    async def _all_ended(self) -> None:
        while self.services.owners:
            self._owner_ends = anyio.Event()
            await self._owner_ends.wait()

    async def _leave(self) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self.services.storage.leave(self.services.node)
            except StorageError as error:
                log_event("rewound.claim.leave", logging.WARNING, node=self.services.node, reason=str(error))
        if self.leftovers:
            await self.services.storage.close()
            self.finished.set()
