"""Running a map's elements (rules M1-M6)."""

from collections.abc import Callable

import msgspec
from anyio.abc import TaskGroup

from rewound.errors import RewoundError, StorageError
from rewound.runtime.declare import describe_error
from rewound.runtime.engine import RunMap, StopMap, first_failure, mapping
from rewound.runtime.engine.messages import Failure, Halting, Result, Settled, Stop
from rewound.runtime.outcomes import StepError
from rewound.runtime.owners.asides import aside_of
from rewound.runtime.owners.flight import Flight
from rewound.runtime.owners.letters import Stored, WorkMail
from rewound.runtime.owners.map_log import tell_failed
from rewound.runtime.owners.way import MapParts

__all__ = ["Forward"]


class Forward:
    """Runs elements in index order.

    Args:
        parts: what it works on.
        order: what to do.
    """

    def __init__(self, parts: MapParts, order: RunMap) -> None:
        self._parts = parts
        self._order = order
        self._head = parts.store.head
        self._plan = parts.context.plan
        self._failed: list[tuple[int, StepError]] = []

    # -- begin, or go on

    @classmethod
    async def open(
        cls, parts: MapParts, order: RunMap, tasks: TaskGroup, stored: Callable[[Result | None], object]
    ) -> "Forward":
        """Find the rows, or fail the map because there are none to be had (S2, M4)."""
        way = cls(parts, order)
        error = await parts.rows.open() or parts.rows.check()
        if error is not None:
            way._break_off(error)
        elif not way._head.stop:
            parts.rows.begin(tasks, stored)
        way._head.total = parts.rows.total
        return way

    def _break_off(self, error: RewoundError) -> None:
        mapping.break_off(self._head, describe_error(error, step=self._parts.context.step, attempts=0))

    async def adopt(self) -> bool:
        """Let the elements that were in flight resume at their last recorded step (M3)."""
        crew, working = self._parts.crew, False
        for index in range(self._head.low, self._head.started):
            cell = await self._parts.store.cell(index)
            if cell is None:
                await self.begin(index)
                working = True
                continue
            flight = crew.new(index, cell)
            if not flight.state.terminal:
                crew.add(flight)
                await crew.equip(flight)
                working = flight.adopt(self._parts.services.time()) or working
        return working

    # -- elements

    def take_in(self, message: StopMap | Stored) -> None:
        """Stop, as the map's level does; or take note of what has become of the source."""
        match message:
            case StopMap(_, _, verb, cut):
                if mapping.stop(self._head, verb, cut=cut):
                    at = self._parts.services.time()
                    self._parts.crew.tell_all(Stop(at, "cancel" if verb == "cancel" else "undo"))
            case Stored(Failure(error)):
                mapping.break_off(self._head, error)
            case Stored(Halting(reason)):
                halt = StepError("Halt", reason, self._parts.context.step)
                mapping.break_off(self._head, halt, halt=True)
            case _:
                pass
        self._head.total = self._parts.rows.total

    def next(self) -> int | None:
        """Have the next row's element begin, if there is room."""
        flights, rows = self._parts.crew.flights, self._parts.rows
        return mapping.next_forward(self._head, flights, self._plan.batch_size, rows.available)

    async def begin(self, index: int) -> None:
        """Begin an element. One whose inputs do not fit has failed, one without a row is skipped."""
        crew, at = self._parts.crew, self._parts.services.time()
        flight = crew.new(index)
        crew.add(flight)
        try:
            if not await crew.equip(flight):
                flight.skip(at)
        except StorageError:
            raise
        except RewoundError as error:
            flight.refuse(describe_error(error, step="", attempts=0), at)

    def settle(self, flight: Flight) -> None:
        """Count an element that has settled; the first that fails stops an atomic map (M5)."""
        parts, error = self._parts, first_failure(flight.state)
        placed = None if error is None else self._placed(flight.index, error)
        mapping.settle_forward(self._head, parts.crew.flights, flight.state, placed, atomic=self._plan.atomic)
        parts.store.keep(flight.index, flight.cell())
        if flight.has_failures:
            parts.store.keep_aside(flight.index, aside_of(parts.context, flight))
        if flight.state.status == "failed" and error is not None:
            self._failed.append((flight.index, error))

    def _placed(self, index: int, error: StepError) -> StepError:
        """Name the step of a failure with its way from the map: `charges[7]/charge`."""
        element = f"{self._parts.context.step}[{index}]"
        return msgspec.structs.replace(error, step=f"{element}/{error.step}" if error.step else element)

    # -- afterwards

    def stored(self) -> None:
        """Tell of failures; ask for more rows if there is room."""
        for index, error in self._failed:
            tell_failed(self._parts.context, index, error)
        self._failed.clear()
        self._want()

    def _want(self) -> None:
        head, rows = self._head, self._parts.rows
        if len(self._parts.crew.flights) < self._plan.batch_size and head.started >= rows.available:
            rows.want()

    def result(self) -> WorkMail | None:
        """Settle the map's step, once no element is in flight and none will begin."""
        head, context = self._head, self._parts.context
        result = mapping.forward_result(head, self._parts.crew.flights)
        if result is None:
            return None
        path, step = context.place
        always = self._plan.undo_all is not None
        count = mapping.count_of(head, result, always=always)
        at, generation = self._parts.services.time(), context.level.state.generation
        return Settled(at, step, self._order.attempt, generation, result, path, count)
