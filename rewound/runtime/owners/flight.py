"""One element of a map that is in flight: on its way forward, or being taken back."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from rewound.runtime.declare import Plan
from rewound.runtime.engine import RunState, advance, fold, start
from rewound.runtime.engine.changes import apply
from rewound.runtime.engine.mapping import Outcome, encode_cell
from rewound.runtime.engine.messages import Message, Stop
from rewound.runtime.engine.records import (
    Ended,
    Failed,
    Record,
    RollbackOpened,
    Spawned,
    Started,
    Within,
    encode_record,
)
from rewound.runtime.outcomes import RollbackFailure, StepError
from rewound.runtime.owners.maps import MapContext
from rewound.runtime.owners.values import space_of
from rewound.runtime.owners.work import Work

__all__ = ["Aside", "Flight", "aside_of_lost"]


class Aside(Struct, array_like=True):
    """An element's rollback failures, kept beside the map (R5, R8).

    `nested` names the spaces of maps inside the element that have more.
    """

    failures: list[RollbackFailure]
    nested: list[str] = []


class Flight:
    """An element: its state, what is recorded of it, what is being done for it.

    What begins is not recorded one by one: the map's watermark says that the element has begun, and a
    body that was in flight at a crash runs again.

    Args:
        index: the element.
        plan: what it runs.
        records: what is stored of it.
        encoded: the same, encoded.
        at: the storage's clock.
    """

    __slots__ = ("_encoded", "_new", "back", "had_work", "index", "plan", "state", "work")

    def __init__(
        self, index: int, plan: Plan, records: list[Record], encoded: list[bytes], *, at: float
    ) -> None:
        self.index = index
        self.plan = plan
        self.state: RunState = fold(plan, [Spawned(at, b"", plan.name, plan.version, None), *records])
        self.back = False
        self.had_work = False
        self.work: Work | None = None
        self._encoded = encoded
        self._new = False

    @property
    def busy(self) -> bool:
        """Whether any user code of it is running."""
        return self.work is not None and self.work.busy

    # -- what is decided and recorded

    def advance(self, message: Message) -> None:
        """Let the engine decide what a message means."""
        self._keep(advance(self.plan, self.state, message))

    def start(self, at: float, slots: int) -> list[Record]:
        """Begin ready steps; `slots` bounds those with a body."""
        began = start(self.plan, self.state, at, slots)
        self._keep(began)
        return began

    def take_back(self, at: float) -> None:
        """Begin to take the element back; one that has nothing to be taken back stays at its end.

        A failed one has rolled itself back, and what a halted one leaves is meant to stay (R4).
        """
        self.back = True
        failures = bool(self.state.rollback_failures or self.state.left)
        if self.state.status != "halted" and (self.state.cause is None or failures):
            self.advance(Stop(at, "undo"))
            self.had_work = not self.state.terminal

    def skip(self, at: float) -> None:
        """End an element that has nothing to run on: the row that it stands for is a gap."""
        self._force([Ended(at, "cancelled")])

    def refuse(self, error: StepError, at: float) -> None:
        """Fail an element whose inputs do not fit: nothing of it has begun (S2)."""
        root = self.plan.roots[0]
        self._force([Failed(at, root, error, started=False), RollbackOpened(at), Ended(at, "failed")])

    @property
    def changed(self) -> bool:
        """Whether there is anything to store."""
        return self._new

    def cell(self, rollback: int = 0, outcome: Outcome = Outcome.NONE) -> bytes:
        """Encode the element as it is now."""
        self._new = False
        return encode_cell(self._encoded, rollback, outcome)

    def aside(self, context: MapContext) -> bytes:
        """Encode the element's rollback failures, with their place."""
        path = "/".join(context.path)
        failures = [
            msgspec.structs.replace(each, map_step=each.map_step or path, element_index=self.index)
            for each in self.state.rollback_failures
        ]
        prefix = (*context.path, str(self.index))
        nested = [space_of(context.generation, (*prefix, *inner)) for inner in _with_failures(self.state)]
        return msgspec.msgpack.encode(Aside(failures, nested))

    def _force(self, records: list[Record]) -> None:
        for record in records:
            apply(self.plan, self.state, record)
        self._keep(records)

    def _keep(self, records: Iterable[Record]) -> None:
        for record in records:
            own = record.record if isinstance(record, Within) else record
            if not isinstance(own, Started):
                self._encoded.append(encode_record(record))
                self._new = True


def aside_of_lost(context: MapContext, index: int) -> bytes:
    """Encode the one failure of an element whose record is gone (R4, R5)."""
    path = "/".join(context.path)
    message = "its record is gone, so nobody knows what it did; look yourself"
    lost = RollbackFailure(context.step, "undo", "Unavailable", message, path, index)
    return msgspec.msgpack.encode(Aside([lost]))


def _with_failures(state: RunState, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Find the maps of an element that have elements with rollback failures."""
    found = [(*path, name) for name, left in state.maps_left.items() if left]
    for name, child in state.children.items():
        found += _with_failures(child, (*path, name))
    return found
