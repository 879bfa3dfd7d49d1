"""The owner of a map: keeps its bound, stores its progress, takes its elements forward and back."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup

from rewound.actors import Actor, Letter, Supervisor
from rewound.errors import ActorStopped, RewoundError
from rewound.runtime.declare import ONCE, describe_error
from rewound.runtime.engine import (
    Place,
    RollBackMap,
    RunMap,
    StopMap,
    first_failure,
    mapping,
    next_alarm,
    started_in,
    wanted,
)
from rewound.runtime.engine.mapping import MapHead, Outcome
from rewound.runtime.engine.messages import Failure, HandlerDone, Opened, Settled, Stop, Tick
from rewound.runtime.owners.alarm import RunAlarm
from rewound.runtime.owners.attempt import failure_of
from rewound.runtime.owners.flight import Flight, aside_of_lost
from rewound.runtime.owners.hands import Hands
from rewound.runtime.owners.letters import (
    Close,
    ElementMail,
    HandlerCut,
    MapBroken,
    MapClosed,
    MapMail,
    MapStuck,
    OwnerMail,
    Stored,
    Wake,
)
from rewound.runtime.owners.map_log import tell_back, tell_element, tell_opened
from rewound.runtime.owners.maps import MapContext, supervisor_for
from rewound.runtime.owners.rows import GAP
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.sources import RowSource
from rewound.runtime.owners.spaces import SpaceWriter
from rewound.runtime.owners.turns import Turns
from rewound.runtime.owners.values import Site
from rewound.runtime.owners.work import Work

__all__ = ["MapOwner"]

PAGE = 100
"""Cells that are read at a time."""


class MapOwner(Actor[MapMail]):
    """Owns one map for one order: run its elements, or take them back.

    For each batch of letters (`handle`):

    1. Take in what there is: elements advance, orders are noted.
    2. Settle the elements that are at their end; let the next ones begin, never more than `batch_size`.
    3. Start their ready steps for which there are slots.
    4. Store what changed: one cell an element, and the head, in one write.
    5. Act: run bodies and handlers, cut bodies off, read more rows.
    6. Report to the parent once the order is carried out, and go.

    Args:
        services: the node's.
        context: where the map is, and what it is made of.
        order: what to do.
        report: takes a key and a message for the parent, never waits.
    """

    def __init__(
        self,
        services: Services,
        context: MapContext,
        order: RunMap | RollBackMap,
        report: Callable[[Hashable, OwnerMail], None],
    ) -> None:
        plan = context.level.plan.steps[context.step].map
        assert plan is not None  # noqa: S101 - only maps have owners
        # One that has reported may still be ending when the next order comes.
        self.key = (context.space, order.rollback if isinstance(order, RollBackMap) else 0)
        self._services = services
        self._context = context
        self._order = order
        self._tell_parent = report
        self._plan = plan
        self._batch = plan.batch_size
        self._space = SpaceWriter(services.storage, context.claim, context.space)
        self._failures = SpaceWriter(services.storage, context.claim, f"{context.space}!")
        self._rows = RowSource(services, context, plan)
        self._head = MapHead()
        self._flights: dict[int, Flight] = {}
        self._cells: dict[int, bytes] = {}
        self._aside: dict[int, bytes] = {}
        self._page: dict[int, bytes] = {}
        self._page_first = -1
        self._stored_head = b""
        self._source_error: Exception | None = None
        self._closing = False
        self._turns = Turns(services.slots, self._wake)
        self._alarm = RunAlarm(services, self._rang)

    @property
    def _back(self) -> bool:
        return isinstance(self._order, RollBackMap)

    # -- life

    async def run(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Live until the order is carried out; whatever goes wrong is the parent's to deal with."""
        inner = supervisor_for(self._plan.child, self._services.clock, self._broken)
        try:
            async with inner as maps, anyio.create_task_group() as tasks:
                try:
                    await self._open(tasks, maps)
                    await serve()
                finally:
                    tasks.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - passed on
            self._broken(self.key, error)
        finally:
            self._turns.close()
            self._alarm.set(None)

    async def _open(self, tasks: TaskGroup, maps: Supervisor | None) -> None:
        self._tasks, self._maps, self._hands = tasks, maps, Hands(tasks)
        stored = await self._space.open()
        if stored is not None:
            self._head, self._stored_head = mapping.decode_head(stored), stored
        await self._failures.open()
        await self._rows.open(back=self._back)
        if isinstance(self._order, RollBackMap):
            mapping.open_rollback(self._head, self._order.rollback)
            tell_opened(self._context, self._head, self._batch)

    async def started(self) -> None:
        """Adopt the elements that were in flight, then go on."""
        low, high = (self._head.next, self._head.high) if self._back else (self._head.low, self._head.started)
        resumed = [index for index in range(low, high) if await self._resume(index)]
        if resumed and not self._back:
            self._count_recovery()
        if not self._back:
            self._rows.begin(self._tasks, self._stored)
        await self.handle([])

    async def _resume(self, index: int) -> bool:
        """Take up an element that began and has not settled; tell whether there was one."""
        flight = await self._load(index)
        if flight is None or (flight.state.terminal and not self._back):
            return False
        if self._back and await self._has_outcome(index):
            return False
        self._flights[index] = flight
        flight.back = flight.had_work = self._back
        if self._back and flight.state.terminal:
            flight.take_back(self._services.time())
        return True

    async def _has_outcome(self, index: int) -> bool:
        raw = await self._cell(index)
        cell = None if raw is None else mapping.decode_cell(raw)[2]
        return cell is not None and cell.rollback == self._head.rollback and cell.outcome > 0

    def _count_recovery(self) -> None:
        """Architecture 5.7, for elements: their settling is what shows that a takeover got anywhere."""
        head = self._head
        head.recoveries = head.recoveries + 1 if head.seen == head.settled else 1
        head.seen = head.settled
        if head.recoveries > self._services.settings.max_recoveries:
            reason = f"elements of {'/'.join(self._context.path)} were in flight each time its process died"
            self._tell_parent(("stuck", self.key), MapStuck(f"{reason}; mend that, then retry the run"))

    # -- the loop

    async def handle(self, letters: list[Letter[MapMail]]) -> None:
        """Carry out the six steps of the class's docstring for one batch."""
        for letter in letters:
            self._take_in(letter.message)
        while await self._turn_over():
            pass
        started = self._start()
        await self._store()
        self._act(started)
        self._report()

    def _take_in(self, message: MapMail) -> None:
        match message:
            case ElementMail(index, inner):
                self._take_in_element(index, inner)
            case Stored(error):
                self._source_error = self._source_error or error
            case StopMap(_, _, verb, cut):
                self._stop(verb, cut=cut)
            case Close(now):
                self._closing = True
                for flight in self._flights.values():
                    if flight.work is not None:
                        flight.work.close(now=now)
            case Tick():
                for flight in self._flights.values():
                    flight.advance(message)
            case Wake():
                pass

    def _take_in_element(self, index: int, message: OwnerMail) -> None:
        flight = self._flights.get(index)
        if flight is None:
            return
        match message:
            case HandlerCut(place) | MapClosed(place):
                self._free(flight, place)
            case MapBroken(_, error):
                raise error
            case MapStuck():
                self._tell_parent(("stuck", self.key), message)
            case Settled() | HandlerDone():
                self._free(flight, (message.path, message.step))
                flight.advance(message)
            case Opened():
                flight.advance(message)
            case _:
                pass

    @staticmethod
    def _free(flight: Flight, place: Place) -> None:
        if flight.work is not None:
            flight.work.free(place)

    def _stop(self, verb: Literal["failure", "undo", "cancel"], *, cut: bool) -> None:
        known = (self._head.stop, self._head.cut)
        mapping.stop(self._head, verb, cut=cut)
        if cut and known != (self._head.stop, self._head.cut):
            at = self._services.time()
            for flight in self._flights.values():
                if not flight.state.terminal:
                    flight.advance(Stop(at, "cancel" if verb == "cancel" else "undo"))

    # -- elements begin and settle

    async def _turn_over(self) -> bool:
        """Settle what is at its end and let the next begin; tell whether anything changed."""
        settled = [flight for flight in self._flights.values() if flight.state.terminal]
        for flight in settled:
            self._settle(flight)
        began = False
        while not self._closing and (index := self._next()) is not None:
            began = True
            if self._back:
                await self._begin_back(index)
            else:
                await self._begin(index)
        return bool(settled) or began

    def _next(self) -> int | None:
        if self._back:
            return mapping.next_back(self._head, self._flights, self._batch)
        if self._source_error is not None:
            return None
        return mapping.next_forward(self._head, self._flights, self._batch, self._rows.available)

    def _settle(self, flight: Flight) -> None:
        del self._flights[flight.index]
        if self._back:
            outcome = mapping.outcome_back(flight.state, had_work=flight.had_work)
            self._settle_back(flight.index, outcome, flight)
            return
        error = first_failure(flight.state)
        mapping.settle_forward(self._head, self._flights, flight.state, error, atomic=self._plan.atomic)
        self._cells[flight.index] = flight.cell()
        self._keep_failures(flight)

    def _settle_back(self, index: int, outcome: Outcome, flight: Flight | None) -> None:
        mapping.settle_back(self._head, self._flights, outcome)
        if flight is not None:
            self._cells[index] = flight.cell(self._head.rollback, outcome)
            self._keep_failures(flight)
        failures = 1 if flight is None else len(flight.state.rollback_failures) + flight.state.left
        tell_element(self._context, index, outcome, failures)

    def _keep_failures(self, flight: Flight) -> None:
        """Keep an element's rollback failures beside the map: nobody's memory grows with them (R8)."""
        if flight.state.rollback_failures or flight.state.left or self._head.rollback > 1:
            self._aside[flight.index] = flight.aside(self._context)

    async def _begin(self, index: int) -> None:
        flight = self._flights[index] = Flight(index, self._plan.child, [], [], at=self._services.time())
        await self._equip(flight)

    async def _equip(self, flight: Flight) -> None:
        """Give an element its inputs and bodies. One whose inputs do not fit has failed (S2)."""
        try:
            item = await self._rows.item(flight.index)
            if item is GAP:
                flight.skip(self._services.time())
                return
            instance = self._rows.inputs(item)
        except RewoundError as error:
            flight.refuse(describe_error(error, step=self._context.step, attempts=0), self._services.time())
            return
        context, services = self._context, self._services
        site = Site(services.storage, context.run_id, (*context.path, str(flight.index)), context.generation)
        flight.work = Work(
            services,
            self._plan.child,
            site,
            claim=context.claim,
            instance=instance,
            state=flight.state,
            hands=self._hands,
            maps=self._maps,
            report=self._element_report(flight.index),
        )

    def _element_report(self, index: int) -> Callable[[Hashable, OwnerMail], None]:
        def report(key: Hashable, message: OwnerMail) -> None:
            self._signal((index, key), ElementMail(index, message))

        return report

    async def _begin_back(self, index: int) -> None:
        flight = await self._load(index)
        if flight is None:
            self._unavailable(index)
            return
        self._flights[index] = flight
        flight.take_back(self._services.time())

    def _unavailable(self, index: int) -> None:
        """Its record is gone: nobody knows what it did (R4)."""
        self._settle_back(index, Outcome.UNAVAILABLE, None)
        self._aside[index] = aside_of_lost(self._context, index)

    # -- what is stored of them

    async def _load(self, index: int) -> Flight | None:
        raw = await self._cell(index)
        if raw is None and self._back:
            return None
        records, encoded, _ = mapping.decode_cell(raw) if raw else ([], [], None)
        flight = Flight(index, self._plan.child, records, encoded, at=self._services.time())
        if not flight.state.terminal or self._back:
            await self._equip(flight)
        return flight

    async def _cell(self, index: int) -> bytes | None:
        if index in self._cells:
            return self._cells[index]
        first = index - index % PAGE
        if first != self._page_first:
            space = await self._space.read(first, PAGE)
            self._page, self._page_first = (dict(space.cells) if space else {}), first
        return self._page.get(index)

    async def _store(self) -> None:
        for index, flight in self._flights.items():
            if flight.changed:
                self._cells[index] = flight.cell()
        head = mapping.encode_head(self._head)
        if self._aside:
            aside, self._aside = self._aside, {}
            await self._failures.write(b"", aside)
        if self._cells or head != self._stored_head:
            cells, self._cells = self._cells, {}
            await self._space.write(head, cells)
            self._stored_head = head
            if self._page:
                self._page.update({index: raw for index, raw in cells.items() if index in self._page})

    # -- acting

    def _start(self) -> set[tuple[int, Place]]:
        flights = list(self._flights.values())
        if self._closing:
            self._turns.take(0)
            return set()
        granted = self._turns.take(sum(wanted(flight.plan, flight.state) for flight in flights))
        started: set[tuple[int, Place]] = set()
        at = self._services.time()
        for flight in flights:
            began = started_in(flight.plan, flight.start(at, granted - len(started)))
            started |= {(flight.index, place) for place in began}
        return started

    def _act(self, granted: set[tuple[int, Place]]) -> None:
        at = self._services.time()
        for flight in self._flights.values():
            if flight.work is not None:
                places = [place for index, place in granted if index == flight.index]
                flight.work.act(at, places, closing=self._closing)
        alarms = (next_alarm(flight.plan, flight.state) for flight in self._flights.values())
        due = [alarm for alarm in alarms if alarm is not None and not self._closing]
        self._alarm.set(min(due, default=None))
        if len(self._flights) < self._batch:
            self._rows.want()

    def _report(self) -> None:
        """Tell the parent once the order is carried out, or nothing runs any more in a closing node."""
        if self._closing and not any(flight.busy for flight in self._flights.values()):
            self._end(MapClosed(self._context.place))
            return
        at, (path, step) = self._services.time(), self._context.place
        if isinstance(self._order, RollBackMap):
            if mapping.back_done(self._head, self._flights):
                tell_back(self._context, self._head)
                done = HandlerDone(
                    at, step, self._order.kind, 1, None, self._order.rollback, path, self._head.left
                )
                self._end(done)
            return
        self._head.total = self._rows.total
        result = mapping.forward_result(self._head, self._flights)
        if self._source_error is not None and not self._flights:
            failed = failure_of(self._source_error, step=step, attempt=1, retry=ONCE)
            result = failed if isinstance(failed, Failure) else result
        if result is not None:
            generation = self._context.level.state.generation
            self._end(Settled(at, step, self._order.attempt, generation, result, path))

    def _end(self, message: OwnerMail) -> None:
        self._tell_parent(("map", *self._context.path), message)
        self.stop()

    # -- signals

    def _broken(self, _key: Any, error: Exception) -> None:
        self._tell_parent(("map", *self._context.path), MapBroken(self._context.place, error))

    def _stored(self, error: Exception | None = None) -> None:
        self._signal("rows", Stored(error))

    def _wake(self) -> None:
        self._signal("slot", Wake())

    def _rang(self) -> None:
        self._signal("alarm", Tick(self._services.time()))

    def _signal(self, key: Hashable, message: MapMail) -> None:
        try:
            self.ref.signal(key, message)
        except ActorStopped:
            return  # the order is carried out
