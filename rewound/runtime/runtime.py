"""The runtime: what a program enters to run reactors."""

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar, overload

from rewound.actors import Clock
from rewound.errors import RunNotFound
from rewound.runtime.calling import State, call_of, check_key, opener_of
from rewound.runtime.catalogue import Catalogue
from rewound.runtime.declare import Duration, Reactor, seconds
from rewound.runtime.engine.records import decode_records
from rewound.runtime.events import RunEvent, event_of
from rewound.runtime.lifetime import Lifetime
from rewound.runtime.listing import RunSummary, summary_of
from rewound.runtime.reading import Reader
from rewound.runtime.run import Run
from rewound.runtime.settings import Settings
from rewound.runtime.spawning import spawn
from rewound.runtime.verbs import ask_owner
from rewound.storage.protocol import Check, Query, Storage

T = TypeVar("T")

__all__ = ["RunSummary", "Runtime"]


class Runtime(Lifetime):
    """Runs reactors in this process, on a storage that other processes may share.

    Enter it where the program starts and leave it where it ends; on asyncio the two may be different
    tasks, as in lifespans and test fixtures. It installs no signal handlers and configures no logging.

    Args:
        storage: a URL (`memory://`, `sqlite:///app.db`, `redis://localhost/0`, ...) or a storage object.
            Default: memory, which does not outlive the process.
        reactors: what this node can run. Default: every reactor class that is defined.
        state: what bodies see as `ctx.state`: a mapping, or a function that gives an async context
            manager yielding one, opened and closed with the runtime.
        concurrency: bodies in flight at most. Default 1000.
        max_owners: live runs on this node at most; beyond it `spawn` waits. Default ten times that.
        lease: seconds after which a node that stopped renewing is dead; takeover takes at most two.
            Default 10.
        grace: seconds that leaving lets bodies finish before it cancels them. Default 10.
        retention: how long ended runs are kept, seconds or a `timedelta`. Default 7 days.
        max_recoveries: takeovers in a row, with a body in flight and nothing settled, before a run is
            parked as stuck. Default 5.
        max_payload: bytes of one stored value at most. Default 1 MiB.
        clock: for tests.

    Raises:
        DefinitionError: an option, or a reactor, cannot work; the message names it.

    Example:
        >>> async with Runtime("sqlite:///app.db") as runtime:
        ...     run = await runtime.spawn(Greet(name="Ada"))
        ...     print(await run.result())
    """

    def __init__(
        self,
        storage: str | Storage = "memory://",
        *,
        reactors: Iterable[type[Reactor[Any]]] | None = None,
        state: State | None = None,
        concurrency: int = 1000,
        max_owners: int | None = None,
        lease: Duration = 10.0,
        grace: Duration = 10.0,
        retention: Duration = timedelta(days=7),
        max_recoveries: int = 5,
        max_payload: int = 1_048_576,
        clock: Clock | None = None,
    ) -> None:
        settings = Settings(
            concurrency=concurrency,
            max_owners=max_owners if max_owners is not None else 10 * concurrency,
            lease=seconds(lease, "Runtime: lease"),
            grace=seconds(grace, "Runtime: grace", zero=True),
            retention=seconds(retention, "Runtime: retention", zero=True),
            max_recoveries=max_recoveries,
            max_payload=max_payload,
        )
        super().__init__(storage, settings, Catalogue(reactors), opener_of(state), clock)

    # -- runs

    @overload
    async def spawn(self, reactor: Reactor[T], /, *, key: str | None = None) -> Run[T]: ...
    @overload
    async def spawn(
        self, reactor: type[Reactor[T]], inputs: Mapping[str, Any] | None = None, /, *, key: str | None = None
    ) -> Run[T]: ...
    async def spawn(
        self, reactor: Any, inputs: Mapping[str, Any] | None = None, /, *, key: str | None = None
    ) -> Run[Any]:
        """Start a run; return once it is stored.

        The run goes on if the handle is dropped, or the caller cancelled. Its steps see the context
        variables of this call.

        Args:
            reactor: an instance with its inputs, or the class with a mapping of inputs.
            inputs: with a class.
            key: at most one run per reactor and key. A repeat returns the first run, `existing` set; its
                inputs are kept.

        Raises:
            InputError: the inputs do not fit; nothing was stored.
            DefinitionError: the reactor cannot be planned, or is not among this runtime's.
            StorageError: storage cannot be reached; the run may have been stored, and then goes on.
            RuntimeClosed: the runtime was not entered, or is closing.

        Example:
            >>> run = await runtime.spawn(Checkout(order=order), key=f"order-{order.id}")
        """
        node = self._running()
        kind, given = call_of(reactor, inputs)
        check_key(key)
        plan = self._catalogue.plan(kind)
        spawned = await spawn(node, plan, given, key)
        reader = Reader(node.services, node.watches, plan, spawned.run_id)
        return Run(self, reader, existing=spawned.existing, inputs_differ=spawned.inputs_differ)

    @overload
    async def run(self, reactor: Reactor[T], /, *, key: str | None = None) -> T: ...
    @overload
    async def run(
        self, reactor: type[Reactor[T]], inputs: Mapping[str, Any] | None = None, /, *, key: str | None = None
    ) -> T: ...
    async def run(
        self, reactor: Any, inputs: Mapping[str, Any] | None = None, /, *, key: str | None = None
    ) -> Any:
        """Start a run and wait for its result: `spawn` and `Run.result` in one.

        Raises what both raise.

        Example:
            >>> receipt = await runtime.run(Checkout(order=order))
        """
        run = await self.spawn(reactor, inputs, key=key)
        return await run.result()

    @overload
    async def get(self, run_id: str, reactor: type[Reactor[T]]) -> Run[T]: ...
    @overload
    async def get(self, run_id: str, reactor: None = None) -> Run[Any]: ...
    async def get(self, run_id: str, reactor: type[Reactor[Any]] | None = None) -> Run[Any]:
        """Return a handle on a stored run, wherever it lives.

        Args:
            run_id: the run's id.
            reactor: its class; gives the handle its type. Default: looked up by the stored name.

        Raises:
            RunNotFound: there is no such run of that reactor.
            DefinitionError: this runtime does not know the run's reactor.
        """
        node = self._running()
        journal = await node.services.storage.load(run_id, limit=0)
        if journal is None:
            raise RunNotFound(f"run {run_id} does not exist, or was purged after its retention")
        plan = self._catalogue.plan_of(journal.head, reactor)
        return Run(self, Reader(node.services, node.watches, plan, run_id))

    async def runs(
        self, *, status: str | None = None, reactor: type[Reactor[Any]] | str | None = None
    ) -> AsyncIterator[RunSummary]:
        """List runs, newest first, read page by page as the loop goes on.

        Args:
            status: only runs of this status.
            reactor: only runs of this reactor, given as the class or its stored name.

        Example:
            >>> async for summary in runtime.runs(status="failed", reactor=Checkout): ...
        """
        storage = self._running().services.storage
        name = self._catalogue.plan(reactor).name if isinstance(reactor, type) else reactor
        cursor: str | None = None
        while True:
            page = await storage.runs(Query(status=status, reactor=name), cursor)
            for head in page.heads:
                yield summary_of(head)
            cursor = page.cursor
            if cursor is None:
                return

    async def history(self, run_id: str) -> tuple[RunSummary, list[RunEvent]]:
        """Return a run's summary and all that is recorded about it so far.

        Unlike a handle it needs no knowledge of the run's reactor.

        Args:
            run_id: the run's id.

        Raises:
            RunNotFound: there is no such run.

        Example:
            >>> summary, events = await runtime.history(run_id)
        """
        journal = await self._running().services.storage.load(run_id)
        if journal is None:
            raise RunNotFound(f"run {run_id} does not exist, or was purged after its retention")
        return summary_of(journal.head), [event_of(record) for record in decode_records(journal.records)]

    # -- verbs

    async def undo(self, run_id: str, *, reason: str = "") -> None:
        """Take a run back: cut what is in flight, compensate it, undo what completed (rule V1).

        Returns once the run's owner, on whichever node, has accepted and stored that; wait for the
        outcome with `Run.outcome`. A run with rollback failures repeats only those.

        Raises:
            RunNotFound: there is no such run.
            RollbackInProgress: it is rolling back.
            WrongStatus: its status does not allow that.
        """
        await ask_owner(self._running(), run_id, "undo", reason)

    async def cancel(self, run_id: str, *, reason: str = "") -> None:
        """Stop a run and undo nothing; a later `undo` takes it back (rule V1). Raises as `undo`."""
        await ask_owner(self._running(), run_id, "cancel", reason)

    async def retry(self, run_id: str) -> None:
        """Start a rolled-back run again from its first step, or let a stuck one go on (rule V2).

        Raises:
            RollbackIncomplete: rollback failures are left; `undo` repeats them.
            RunNotFound, RollbackInProgress, WrongStatus: as `undo`.
        """
        await ask_owner(self._running(), run_id, "retry", "")

    async def acknowledge(self, run_id: str) -> None:
        """Accept a run's rollback failures: it then expires after the retention like any other.

        Raises:
            RunNotFound: there is no such ended run.
        """
        services = self._running().services
        if not await services.storage.acknowledge(run_id, services.settings.retention):
            raise RunNotFound(f"there is no ended run {run_id}")

    # -- seeing

    async def doctor(self) -> list[Check]:
        """Examine the storage's settings: what is well, at risk, or must change."""
        return await self._running().services.storage.checks()
