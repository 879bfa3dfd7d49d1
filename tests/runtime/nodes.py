"""Several runtimes on one memory, under one clock that the test moves; and what their bodies act on."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from rewound import Reactor, Runtime
from rewound.actors import VirtualClock
from rewound.runtime.engine.records import Started, encode_record
from rewound.storage import MemoryStorage
from rewound.storage.faults import Fault, Faults
from rewound.storage.protocol import Notice

LEASE = 10.0


class Stage:
    """Where bodies act: it writes down what they do, makes them wait at gates, and fail on demand.

    Attributes:
        log: what was done, in order.
        gates: a body that is named here waits for its event.
        errors: a body that is named here raises this.
        pauses: how many turns of the event loop a body takes; 1 if it is not named here.
        running: how often each body is running now.
        overlaps: bodies that ran twice at a time.
        keys: the idempotency keys under which each body ran.
        most: the most bodies that ran at a time.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gates: dict[str, anyio.Event] = {}
        self.errors: dict[str, BaseException] = {}
        self.pauses: dict[str, int] = {}
        self.running: Counter[str] = Counter()
        self.overlaps: list[str] = []
        self.keys: dict[str, list[str]] = {}
        self.most = 0

    async def act(self, name: str, key: str = "") -> str:
        """Do what a body does."""
        self.log.append(name)
        self.keys.setdefault(name, []).append(key)
        if self.running[name]:
            self.overlaps.append(name)
        self.running[name] += 1
        self.most = max(self.most, self.running.total())
        try:
            for _ in range(self.pauses.get(name, 1)):
                await checkpoint()
            if name in self.gates:
                await self.gates[name].wait()
            if name in self.errors:
                raise self.errors[name]
        finally:
            self.running[name] -= 1
        return name

    def close(self, *names: str) -> None:
        """Shut gates: the bodies of these names wait until `open`."""
        self.gates |= {name: anyio.Event() for name in names}

    def open(self, *names: str) -> None:
        """Open gates."""
        for name in names:
            self.gates.pop(name).set()

    def times(self, name: str) -> int:
        """Count how often a body began."""
        return self.log.count(name)


class Peer:
    """One runtime of a `Net`, and the storage it sees."""

    def __init__(self, runtime: Runtime, faults: Faults) -> None:
        self.runtime = runtime
        self.faults = faults

    async def kill(self) -> None:
        """End it as SIGKILL ends a process: nothing that it does from now on reaches storage."""
        self.faults.crashed.set()
        internals: Any = self.runtime
        host, internals._host, internals._node = internals._host, None, None
        host.cancel()
        await host._ended.wait()

    @property
    def node(self) -> str:
        """Its node id."""
        internals: Any = self.runtime
        return str(internals._node.services.node)

    @property
    def adoption(self) -> Any:
        """What takes runs over for it."""
        internals: Any = self.runtime
        return internals._node.adoption

    @property
    def services(self) -> Any:
        """What its owners share, to look at its books."""
        internals: Any = self.runtime
        return internals._node.services


class Net:
    """A memory, a clock, a stage, and the runtimes on them."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.memory = MemoryStorage(clock=self.clock.time)
        self.stage = Stage()
        self.peers: list[Peer] = []

    async def peer(
        self, *reactors: type[Reactor[Any]], plan: Sequence[Fault] = (), grace: float = 0, **options: Any
    ) -> Peer:
        """Enter one more runtime; the fixture leaves it."""
        faults = Faults(options.pop("storage", self.memory), plan)
        state = {"stage": self.stage, "log": self.stage.log, **options.pop("state", {})}
        runtime = Runtime(
            faults,
            reactors=reactors or None,
            state=state,
            lease=LEASE,
            grace=grace,
            clock=self.clock,
            **options,
        )
        peer = Peer(await runtime.__aenter__(), faults)
        self.peers.append(peer)
        return peer

    async def runtime(self, *reactors: type[Reactor[Any]], **options: Any) -> Runtime:
        """Enter one more runtime, and return it without its storage."""
        return (await self.peer(*reactors, **options)).runtime

    async def close(self) -> None:
        """Leave all runtimes, letting time pass for those that wait."""
        for gate in self.stage.gates.values():
            gate.set()
        async with anyio.create_task_group() as tasks:
            for peer in self.peers:
                tasks.start_soon(peer.runtime.close)
            await self.advance(0.01)
            while any(getattr(peer.runtime, "_host", None) for peer in self.peers):
                await self.advance(1)

    async def advance(self, seconds: float) -> None:
        """Move time on; everything that falls due on the way has happened then."""
        await self.clock.advance(seconds)

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        await self.clock.advance(0)

    def lose_hints(self, *kinds: str) -> None:
        """Lose every notice of these kinds from now on, as a broken channel may."""
        internals: Any = self.memory
        deliver = internals._hub.deliver

        def notify(node: str, notice: Notice) -> None:
            if notice.kind not in kinds:
                deliver(node, notice)

        internals._tables._notify = notify

    def lose_record(self, run_id: str) -> None:
        """Lose the newest record of a run, as a failover may."""
        tables: Any = vars(self.memory)["_tables"]
        tables.journals[run_id].pop()
        tables._entries[run_id].length -= 1

    def lose_run(self, run_id: str) -> None:
        """Lose a run altogether."""
        tables: Any = vars(self.memory)["_tables"]
        tables.remove(tables._entries[run_id])

    def replace_journal(self, run_id: str, records: list[bytes], status: str) -> None:
        """Put other records in the place of a run's own."""
        tables: Any = vars(self.memory)["_tables"]
        tables.journals[run_id][:] = records
        tables._entries[run_id].length, tables._entries[run_id].status = len(records), status

    def break_journal(self, run_id: str) -> None:
        """Make a run's last record speak of a step that never was, and of one record more."""
        tables: Any = vars(self.memory)["_tables"]
        tables.journals[run_id].append(encode_record(Started(0.0, "gone", 1)))
        tables._entries[run_id].length += 1

    def skip(self, seconds: float) -> None:
        """Let time pass at which nothing happened, as it does for a process that was stopped."""
        clock: Any = self.clock
        clock._now += seconds

    @asynccontextmanager
    async def background(self) -> AsyncGenerator[TaskGroup, None]:
        """Give a task group for what goes on meanwhile; what has not ended by then is cancelled."""
        async with anyio.create_task_group() as tasks:
            yield tasks
            await self.settle()
            tasks.cancel_scope.cancel()

    async def records(self, run_id: str) -> list[bytes]:
        """Read a run's journal."""
        journal = await self.memory.load(run_id)
        assert journal is not None
        return journal.records

    async def status(self, run_id: str) -> str:
        """Read a run's status."""
        journal = await self.memory.load(run_id, limit=0)
        assert journal is not None
        return journal.head.status
