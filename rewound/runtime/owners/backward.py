"""Taking a map's elements back (rules R1-R9, R12)."""

from rewound.errors import RewoundError, StorageError
from rewound.runtime.engine import RollBackMap, StopMap, mapping
from rewound.runtime.engine.mapping import Outcome
from rewound.runtime.engine.messages import HandlerDone
from rewound.runtime.owners.asides import aside_of, aside_of_one
from rewound.runtime.owners.flight import Flight
from rewound.runtime.owners.letters import Stored, WorkMail
from rewound.runtime.owners.map_log import tell_back, tell_element, tell_opened
from rewound.runtime.owners.way import MapParts

__all__ = ["Backward"]


class Backward:
    """Takes every element back that has begun, the newest first.

    Args:
        parts: what it works on.
        order: what to do.
    """

    def __init__(self, parts: MapParts, order: RollBackMap) -> None:
        self._parts = parts
        self._order = order
        self._head = parts.store.head
        self._plan = parts.context.plan
        self._opened = False
        self._ended: list[tuple[int, Outcome, int]] = []

    @classmethod
    async def open(cls, parts: MapParts, order: RollBackMap) -> "Backward":
        """Fix the work list, unless that was done before a crash (R2, R3)."""
        way = cls(parts, order)
        await parts.rows.open()  # what is wrong with the rows is said of each element that needs one
        way._opened = mapping.open_rollback(way._head, order.rollback)
        return way

    async def adopt(self) -> bool:
        """Go on with the elements that were being taken back, behind their last recorded undo (R6)."""
        working, at = False, self._parts.services.time()
        for index in range(self._head.next, self._head.high):
            cell = await self._parts.store.cell(index)
            flight = None if cell is None else self._parts.crew.new(index, cell)
            if flight is not None and not flight.state.terminal:
                flight.had_work = True
                if await self._fly(flight, cell):
                    working = flight.adopt(at) or working
        return working

    def take_in(self, message: StopMap | Stored) -> None:
        """Nothing stops a rollback."""

    def next(self) -> int | None:
        """Have the next element come up, if there is room."""
        return mapping.next_back(self._head, self._parts.crew.flights, self._plan.batch_size)

    async def begin(self, index: int) -> None:
        """Begin to take an element back, if there is anything to be taken back."""
        parts = self._parts
        cell = await parts.store.cell(index)
        if cell is None:
            message = "its record is gone, so nobody knows what it did; look yourself"
            self._give_up(index, None, Outcome.UNAVAILABLE, ("Unavailable", message))
            return
        flight = parts.crew.new(index, cell)
        if self._plan.undo_all is not None and flight.completed:
            mapping.settle_back(self._head, parts.crew.flights, Outcome.NONE)
        elif flight.take_back(parts.services.time(), again=self._head.again):
            await self._fly(flight, cell)
        else:
            self.settle(flight)

    async def _fly(self, flight: Flight, cell: bytes | None) -> bool:
        """Take an element in flight; `False` if its undos cannot be called."""
        try:
            await self._parts.crew.equip(flight)  # one that ran on a gap has nothing to be taken back
        except StorageError:
            raise
        except RewoundError as error:
            self._give_up(flight.index, cell, Outcome.FAILED, (type(error).__name__, str(error)))
            return False
        self._parts.crew.add(flight)
        return True

    def settle(self, flight: Flight) -> None:
        """Give an element its outcome (R4)."""
        parts, head, outcome = self._parts, self._head, flight.outcome()
        mapping.settle_back(head, parts.crew.flights, outcome)
        parts.store.keep(flight.index, flight.cell(head.rollback, outcome))
        if flight.has_failures or flight.troubled:
            parts.store.keep_aside(flight.index, aside_of(parts.context, flight))
        failures = len(flight.state.rollback_failures) + flight.state.left
        self._ended.append((flight.index, outcome, failures))

    def _give_up(self, index: int, cell: bytes | None, outcome: Outcome, why: tuple[str, str]) -> None:
        """Give an outcome to an element of which no undo can be called; its record stays as it is."""
        parts, head = self._parts, self._head
        mapping.settle_back(head, parts.crew.flights, outcome)
        if cell is not None:
            _, encoded, _ = mapping.decode_cell(cell)
            parts.store.keep(index, mapping.encode_cell(encoded, head.rollback, outcome))
        parts.store.keep_aside(index, aside_of_one(parts.context, index, *why))
        self._ended.append((index, outcome, 1))

    def stored(self) -> None:
        """Tell of what has happened (R11)."""
        if self._opened:
            self._opened = False
            tell_opened(self._parts.context, self._head)
        for ended in self._ended:
            tell_element(self._parts.context, *ended)
        self._ended.clear()

    def result(self) -> WorkMail | None:
        """Settle the map's turn in its level's rollback, once every element has its outcome (R7)."""
        if not mapping.back_done(self._head, self._parts.crew.flights):
            return None
        tell_back(self._parts.context, self._head)
        path, step = self._parts.context.place
        order, at = self._order, self._parts.services.time()
        return HandlerDone(at, step, order.kind, 1, None, order.rollback, path, self._head.left)
