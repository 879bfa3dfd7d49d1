"""One element of a map that is in flight: on its way forward, or being taken back."""

from collections.abc import Iterable, Sequence

from rewound.runtime.declare import Plan
from rewound.runtime.engine import Place, RunState, advance, fold, start
from rewound.runtime.engine.changes import apply
from rewound.runtime.engine.decide import at_work, is_body, startable
from rewound.runtime.engine.levels import live_levels
from rewound.runtime.engine.mapping import Outcome, encode_cell
from rewound.runtime.engine.messages import Adopted, Message, Stop
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
from rewound.runtime.outcomes import StepError
from rewound.runtime.owners.work import Work

__all__ = ["Flight"]


class Flight:
    """An element: its state, what is recorded of it, what is being done for it.

    Args:
        index: the element.
        plan: what it runs.
        unrecorded: the steps whose beginning is not recorded.
        records: what is stored of it.
        encoded: the same, encoded.
        at: the storage's clock.

    Attributes:
        work: what is being done for it, once it has its inputs.
        had_work: in a rollback: there was something to take back.
        troubled: it had rollback failures when it came up.
        moves: how many of its steps have settled here.
        changed: whether there is anything to store.
    """

    __slots__ = (
        "_encoded",
        "_unrecorded",
        "changed",
        "had_work",
        "index",
        "moves",
        "plan",
        "state",
        "troubled",
        "work",
    )

    def __init__(
        self,
        index: int,
        plan: Plan,
        unrecorded: frozenset[Place],
        records: Sequence[Record] = (),
        encoded: Sequence[bytes] = (),
        *,
        at: float,
    ) -> None:
        self.index = index
        self.plan = plan
        self.work: Work | None = None
        self.had_work = False
        self.moves = 0
        self.changed = False
        self._unrecorded = unrecorded
        self._encoded = list(encoded)
        self.state: RunState = fold(plan, self._from_birth(records, at))
        self.troubled = bool(records) and self.has_failures

    def _from_birth(self, records: Sequence[Record], at: float) -> list[Record]:
        """Put an element's beginning before its records. It is stored only if time runs from it (S12)."""
        if records and isinstance(records[0], Spawned):
            return [*records]
        spawned = Spawned(at, b"", self.plan.name, self.plan.version, None)
        if self.plan.timeout is not None and not records:
            self._encoded.append(encode_record(spawned))
            self.changed = True
        return [spawned, *records]

    @property
    def busy(self) -> bool:
        """Whether any user code of it is running."""
        return self.work is not None and self.work.busy

    @property
    def has_failures(self) -> bool:
        """Whether any undo or compensate of it has failed."""
        return bool(self.state.rollback_failures or self.state.left)

    @property
    def completed(self) -> bool:
        """Whether it has completed, and nothing of it was taken back since."""
        return not self.state.open_steps and self.state.cause is None

    # -- what is decided and recorded

    def advance(self, message: Message) -> None:
        """Let the engine decide what a message means."""
        self._keep(advance(self.plan, self.state, message))

    def start(self, at: float, slots: int) -> list[Record]:
        """Begin ready steps; `slots` bounds those with a body."""
        began = start(self.plan, self.state, at, slots)
        self._keep(began)
        return began

    def adopt(self, at: float) -> bool:
        """Go on with what was in flight when the owner before this one ended; tell if bodies were at work."""
        levels = live_levels(self.plan, self.state)
        working = any(
            at_work(level.plan, level.state, at)[0]
            or any(is_body(level.plan, name) for name in startable(level.state))
            for level in levels
        )
        self.advance(Adopted(at, crashed=False, max_recoveries=0))
        return working

    def take_back(self, at: float, *, again: bool) -> bool:
        """Begin to take the element back; tell if there is anything to be taken back.

        A failed one has rolled itself back, and what a halted one leaves is meant to stay (R4). What
        failed in that is repeated by an undo that repeats the map's rollback (`again`), never by the first.
        """
        state = self.state
        owes = state.cause is None or (again and self.troubled)
        if state.status != "halted" and owes:
            self.advance(Stop(at, "undo"))
            self.had_work = not state.terminal
        return self.had_work

    def outcome(self) -> Outcome:
        """Name the outcome of the element, now that it has been taken back as far as there was anything."""
        if self.has_failures:
            return Outcome.FAILED
        return Outcome.UNDONE if self.had_work else Outcome.NOT_NEEDED

    def skip(self, at: float) -> None:
        """End an element that has nothing to run on: the row that it stands for is a gap."""
        self._force([Ended(at, "cancelled")])

    def refuse(self, error: StepError, at: float) -> None:
        """Fail an element whose inputs do not fit: nothing of it has begun (S2)."""
        root = self.plan.roots[0]
        self._force([Failed(at, root, error, started=False), RollbackOpened(at), Ended(at, "failed")])

    def cell(self, rollback: int = 0, outcome: Outcome = Outcome.NONE) -> bytes:
        """Encode the element as it is now."""
        self.changed = False
        return encode_cell(self._encoded, rollback, outcome)

    def _force(self, records: list[Record]) -> None:
        for record in records:
            apply(self.plan, self.state, record)
        self._keep(records)

    def _keep(self, records: Iterable[Record]) -> None:
        for record in records:
            path, own = (record.path, record.record) if isinstance(record, Within) else ((), record)
            if isinstance(own, Started):
                if (path, own.step) in self._unrecorded:
                    continue
            else:
                self.moves += 1
            self._encoded.append(encode_record(record))
            self.changed = True
