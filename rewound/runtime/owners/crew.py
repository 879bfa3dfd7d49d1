"""The elements of a map that are in flight, and what is being done for them."""

from collections.abc import Callable, Hashable

from anyio.abc import TaskGroup

from rewound.actors import Supervisor
from rewound.runtime.engine import Place, next_alarm, started_in, wanted
from rewound.runtime.engine.mapping import decode_cell, unrecorded
from rewound.runtime.engine.messages import HandlerDone, Message, Settled, Tick
from rewound.runtime.owners.flight import Flight
from rewound.runtime.owners.hands import Hands
from rewound.runtime.owners.letters import ElementMail, HandlerCut, MapBroken, MapClosed, WorkMail
from rewound.runtime.owners.maps import MapContext
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.sources import RowSource
from rewound.runtime.owners.turns import Turns
from rewound.runtime.owners.values import Site
from rewound.runtime.owners.work import Work

__all__ = ["Crew"]


class Crew:
    """Elements in flight, by index. It looks at those only to which something has happened.

    Args:
        services: the node's.
        context: the map.
        rows: what the elements are made of.
        turns: where slots for bodies come from.
        report: takes a key and a message for the map's owner, never waits.

    Attributes:
        flights: the elements; take one out once it has settled.
        alarm: when one of them wants a `Tick`.
    """

    def __init__(
        self,
        services: Services,
        context: MapContext,
        rows: RowSource,
        turns: Turns,
        report: Callable[[Hashable, ElementMail], None],
    ) -> None:
        self._services = services
        self._context = context
        self._plan = context.plan.child
        self._rows = rows
        self._turns = turns
        self._report = report
        self._unrecorded = unrecorded(self._plan)
        self._touched: dict[int, None] = {}  # in the order in which things happened
        self._fresh: list[int] = []  # of these, those that may be at their end since `ended` looked
        self._waiting: dict[int, int] = {}
        self._alarms: dict[int, float] = {}
        self.flights: dict[int, Flight] = {}

    def man(self, tasks: TaskGroup, maps: Supervisor | None) -> None:
        """Say where bodies, and the owners of maps inside elements, live."""
        self._hands, self._maps = Hands(tasks), maps

    @property
    def busy(self) -> bool:
        """Whether any user code is running."""
        return any(flight.busy for flight in self.flights.values())

    @property
    def alarm(self) -> float | None:
        """The earliest time at which an element wants a `Tick`."""
        return min(self._alarms.values(), default=None)

    # -- elements come and go

    def new(self, index: int, cell: bytes | None = None) -> Flight:
        """Make an element of what is stored of it; it is not in flight yet."""
        records, encoded, _ = decode_cell(cell) if cell is not None else ([], [], None)
        return Flight(index, self._plan, self._unrecorded, records, encoded, at=self._services.time())

    def add(self, flight: Flight) -> None:
        """Take an element in flight."""
        self.flights[flight.index] = flight
        self._touch(flight.index)

    def _touch(self, index: int) -> None:
        self._touched[index] = None
        self._fresh.append(index)

    async def equip(self, flight: Flight) -> bool:
        """Give an element its inputs, so that bodies can run; `False` if its row is a gap.

        Raises:
            InputError: the inputs do not fit.
            PayloadError: its row cannot be read.
        """
        instance = await self._rows.inputs(flight.index)
        if instance is None:
            return False
        context, services = self._context, self._services
        flight.work = Work(
            services,
            self._plan,
            Site(services.storage, context.run_id, (*context.path, str(flight.index)), context.generation),
            claim=context.claim,
            instance=instance,
            state=flight.state,
            hands=self._hands,
            maps=self._maps,
            crashed=context.crashed,
            report=self._reporter(flight.index),
        )
        return True

    def _reporter(self, index: int) -> Callable[[Hashable, WorkMail], None]:
        return lambda key, message: self._report((index, key), ElementMail(index, message))

    def ended(self) -> list[Flight]:
        """List the elements that have come to their end since this was asked last."""
        fresh, self._fresh = dict.fromkeys(self._fresh), []
        touched = [self.flights[index] for index in fresh if index in self.flights]
        return [flight for flight in touched if flight.state.terminal]

    # -- things happen to them

    def take_in(self, index: int, message: Message | HandlerCut | MapBroken | MapClosed) -> None:
        """Free the place of what has ended in an element, then ask the engine."""
        flight = self.flights.get(index)
        if flight is None or flight.work is None:
            return
        self._touch(index)
        match message:
            case HandlerCut(place) | MapClosed(place):
                flight.work.free(place)
                return
            case MapBroken(_, error):
                raise error
            case Settled() | HandlerDone():
                flight.work.free((message.path, message.step))
            case _:
                pass
        flight.advance(message)

    def tell_all(self, message: Message) -> None:
        """Let something happen to every element that has not ended."""
        for flight in self.flights.values():
            if not flight.state.terminal:
                flight.advance(message)
                self._touch(flight.index)

    def tick(self, at: float) -> None:
        """Let time pass."""
        self.tell_all(Tick(at))

    def close(self, *, now: bool) -> None:
        """Let bodies come to their end, or cut them off (`now`)."""
        for flight in self.flights.values():
            if flight.work is not None:
                flight.work.close(now=now)

    # -- what is done for them

    def start(self) -> dict[int, set[Place]]:
        """Begin ready steps for which there are slots; return where slots were taken for bodies."""
        for index in self._touched:
            self._look(index)
        granted = self._turns.take(sum(self._waiting.values()))
        started: dict[int, set[Place]] = {}
        at = self._services.time()
        for index in dict.fromkeys([*self._waiting, *self._touched]):
            flight = self.flights.get(index)
            if flight is not None:
                began = started_in(self._plan, flight.start(at, granted))
                granted -= len(began)
                if began:
                    started[index] = began
                    self._look(index)
        self._touched.update(dict.fromkeys(started))
        return started

    def act(self, started: dict[int, set[Place]], *, closing: bool) -> None:
        """Do what the elements call for. `started`: where a slot was taken for a body already."""
        at = self._services.time()
        for index in self._touched:
            flight = self.flights.get(index)
            if flight is not None and flight.work is not None:
                flight.work.act(at, started.get(index, ()), closing=closing)
        self._touched.clear()

    def changed(self) -> list[Flight]:
        """List the elements of which there is anything to store."""
        touched = [self.flights[index] for index in self._touched if index in self.flights]
        return [flight for flight in touched if flight.changed]

    def _look(self, index: int) -> None:
        """Note which slots and which alarm an element waits for."""
        flight = self.flights.get(index)
        count = 0 if flight is None else wanted(flight.plan, flight.state)
        due = None if flight is None else next_alarm(flight.plan, flight.state)
        if count:
            self._waiting[index] = count
        else:
            self._waiting.pop(index, None)
        if due is None:
            self._alarms.pop(index, None)
        else:
            self._alarms[index] = due
