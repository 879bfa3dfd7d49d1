"""The owner of a map: keeps its bound, stores its progress, takes its elements forward and back."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from rewound.actors import Actor, Letter
from rewound.errors import ActorStopped
from rewound.runtime.engine import Place, RollBackMap, RunMap, StopMap, mapping
from rewound.runtime.engine.messages import Result, Tick
from rewound.runtime.owners.alarm import RunAlarm
from rewound.runtime.owners.backward import Backward
from rewound.runtime.owners.crew import Crew
from rewound.runtime.owners.flight import Flight
from rewound.runtime.owners.forward import Forward
from rewound.runtime.owners.letters import (
    Close,
    ElementMail,
    MapBroken,
    MapClosed,
    MapMail,
    MapStuck,
    Stored,
    Wake,
    WorkMail,
)
from rewound.runtime.owners.map_store import MapStore
from rewound.runtime.owners.maps import MapContext, supervisor_for
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.sources import RowSource
from rewound.runtime.owners.turns import Turns
from rewound.runtime.owners.way import MapParts, Way

__all__ = ["MapOwner"]

MOST = 100
"""Elements that come up in one turn of the loop: what is to be stored then is bounded."""


class MapOwner(Actor[MapMail]):
    """Owns one map for one order: run its elements, or take them back.

    For each batch of letters (`handle`):

    1. Take in what there is: elements advance, orders are noted.
    2. Settle the elements that are at their end; let the next ones begin, never more than `batch_size`.
    3. Start their ready steps for which there are slots.
    4. Store what changed: one cell an element, and the head, in one write.
    5. Act: run bodies and handlers, cut bodies off, read more rows.
    6. Report to the parent once the order is carried out, and go.

    What differs between the two orders is in `Forward` and `Backward`.

    Args:
        services: the node's.
        context: where the map is, and what it is made of.
        order: what to do.
        key: names this owner among those of its parent.
        report: takes a key and a message for the parent, never waits.
    """

    def __init__(
        self,
        services: Services,
        context: MapContext,
        order: RunMap | RollBackMap,
        *,
        key: Hashable,
        report: Callable[[Hashable, WorkMail], None],
    ) -> None:
        self.key = key
        self._services = services
        self._context = context
        self._order = order
        self._tell_parent = report
        self._closing = False
        self._turns = Turns(services.slots, self._wake)
        self._alarm = RunAlarm(services, self._rang)
        rows = RowSource(services, context)
        self._crew = Crew(services, context, rows, self._turns, self._signal)
        self._store = MapStore(services.storage, context.claim, context.space)
        self._rows = rows

    # -- life

    async def run(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Live until the order is carried out; whatever goes wrong is the parent's to deal with."""
        inner = supervisor_for(self._context.plan.child, self._services.clock, self._broken)
        try:
            async with inner as maps, anyio.create_task_group() as tasks:
                try:
                    self._crew.man(tasks, maps)
                    self._way = await self._open(tasks)
                    await serve()
                finally:
                    tasks.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - passed on
            self._broken(self.key, error)
        finally:
            self._turns.close()
            self._alarm.set(None)

    async def _open(self, tasks: TaskGroup) -> Way:
        await self._store.open()
        parts = MapParts(self._services, self._context, self._store, self._rows, self._crew)
        if isinstance(self._order, RollBackMap):
            return await Backward.open(parts, self._order)
        return await Forward.open(parts, self._order, tasks, self._stored)

    async def started(self) -> None:
        """Adopt the elements that were in flight; they go on together with the first letters.

        So an order to stop, which may lie there already, comes before anything begins.
        """
        working = await self._way.adopt()
        most = self._services.settings.max_recoveries
        if working and self._context.crashed and not mapping.recovered(self._store.head, most):
            path = "/".join(self._context.path)
            reason = f"its process died {most + 1} times in a row while elements of {path} were in flight"
            self._park(MapStuck(f"{reason}; mend that, then retry the run"))
        self._wake()

    # -- the loop

    async def handle(self, letters: list[Letter[MapMail]]) -> None:
        """Carry out the six steps of the class's docstring for one batch."""
        for letter in letters:
            self._take_in(letter.message)
        more = await self._turn_over()
        started = {} if self._closing else self._crew.start()
        await self._write(started)
        self._act(started)
        self._report()
        if more:
            self._wake()

    def _take_in(self, message: MapMail) -> None:
        match message:
            case ElementMail(index, inner):
                self._take_in_element(index, inner)
            case Stored() | StopMap():
                self._way.take_in(message)
            case Close(now):
                self._close(now=now)
            case Tick(at):
                self._crew.tick(at)
            case _:  # woken, because there is a slot or more to be done
                pass

    def _take_in_element(self, index: int, message: WorkMail) -> None:
        if isinstance(message, MapStuck):
            self._park(message)
        else:
            self._crew.take_in(index, message)

    def _park(self, stuck: MapStuck) -> None:
        """Have the run parked: elements have killed their process again and again (architecture 5.7)."""
        self._tell_parent(("stuck", self.key), stuck)
        self._close(now=True)

    def _close(self, *, now: bool) -> None:
        """Begin nothing more; let what runs come to its end, or cut it off."""
        self._closing = True
        self._turns.close()
        self._crew.close(now=now)

    async def _turn_over(self) -> bool:
        """Settle what is at its end and let the next begin; tell whether there is more of that."""
        for _ in range(MOST):
            self._settle()
            index = None if self._closing else self._way.next()
            if index is None:
                return False
            await self._way.begin(index)
        self._settle()
        return True

    def _settle(self) -> None:
        for flight in self._crew.ended():
            del self._crew.flights[flight.index]
            self._count(flight)
            self._way.settle(flight)

    def _count(self, flight: Flight) -> None:
        """Note what an element has achieved: it shows that a takeover got somewhere (architecture 5.7)."""
        self._store.head.moves += flight.moves
        flight.moves = 0

    async def _write(self, started: dict[int, set[Place]]) -> None:
        """Store everything. If that fails, the slots of the bodies that would have begun go back."""
        for flight in self._crew.changed():
            self._store.keep(flight.index, flight.cell())
            self._count(flight)
        try:
            await self._store.store()
        except BaseException:
            self._services.slots.give(sum(map(len, started.values())))
            raise
        self._way.stored()

    def _act(self, started: dict[int, set[Place]]) -> None:
        self._crew.act(started, closing=self._closing)
        self._alarm.set(None if self._closing else self._crew.alarm)

    def _report(self) -> None:
        """Tell the parent once the order is carried out, or nothing runs any more in a closing node."""
        message = self._way.result()
        if message is None and self._closing and not self._crew.busy:
            message = MapClosed(self._context.place)
        if message is not None:
            self._tell_parent(("map", *self._context.path), message)
            self.stop()

    # -- signals

    def _broken(self, _key: Any, error: Exception) -> None:
        self._tell_parent(("map", *self._context.path), MapBroken(self._context.place, error))

    def _stored(self, broken: Result | None) -> None:
        self._signal(("rows", broken is None), Stored(broken))

    def _wake(self) -> None:
        self._signal("slot", Wake())

    def _rang(self) -> None:
        self._signal("alarm", Tick(self._services.time()))

    def _signal(self, key: Hashable, message: MapMail) -> None:
        try:
            self.ref.signal(key, message)
        except ActorStopped:
            return  # the order is carried out
