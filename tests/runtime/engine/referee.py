"""A second opinion on a journal: the rules of docs/rules.md, told record by record.

Written from the rules, not from the engine; it knows nothing but the plan and the records, and (what no
record tells) when a process died and which attempts never began.
"""

from collections.abc import Callable
from typing import Any, Literal

from rewound.runtime.declare import Plan
from rewound.runtime.engine import messages as m
from rewound.runtime.engine import records as r

__all__ = ["Referee"]

Entry = tuple[r.HandlerKind, str]


class Referee:
    """Follows one run and objects to any record that the rules do not allow.

    Args:
        plan: what runs.
        max_recoveries: how many crashes in a row are put up with.
    """

    def __init__(self, plan: Plan, max_recoveries: int) -> None:
        self.plan = plan
        self.max_recoveries = max_recoveries
        self.seen = 0
        self.generation = 0
        self.began_at = 0.0
        self.queued = False
        self.stuck = False
        self.row = 0
        self._never: set[tuple[int, str, int]] = set()
        self._begin()

    def _begin(self) -> None:
        self.attempts = dict.fromkeys(self.plan.steps, 0)
        self.flight: set[str] = set()
        self.waits: dict[str, float] = {}
        self.began: set[str] = set()
        self.broken: list[str] = []
        self.completed: list[str] = []
        self.skipped: set[str] = set()
        self.halted: set[str] = set()
        self.stop: Literal["failure", "halt", "undo", "cancel"] | None = None
        self.cut = False
        self.rolling = False
        self.expired = False
        self.cause: Literal["failure", "undo"] | None = None
        self.queue: list[Entry] | None = None
        self.tries = 0
        self.reversed: set[Entry] = set()
        self.left: set[Entry] = set()
        self.ended: str | None = None

    # -- what no record tells

    def heard(self, message: m.Message) -> None:
        """Note an attempt that is said never to have begun."""
        match message:
            case m.Settled(_, name, attempt, generation, m.Failure(started=False)):
                self._never.add((generation, name, attempt))
            case _:
                pass

    def died(self) -> None:
        """Count what was in flight as begun: nobody can tell."""
        self.began |= self.flight

    def allowed(self) -> set[str]:
        """Return the verbs that section 3 allows now."""
        if self.ended == "failed":
            return {"undo"} if self.left else {"retry"}
        if self.ended == "cancelled":
            return {"undo"} if self.cause is None or self.left else set()
        if self.ended is not None:
            return {"undo"}
        if self.stuck:
            return {"retry"} if self.rolling else {"retry", "undo", "cancel"}
        if self.queued:
            return {"cancel"}
        return set() if self.rolling else {"undo", "cancel"}

    # -- records

    def see(self, record: r.Record) -> None:
        """Check one record against all before it."""
        self.seen += 1
        resuming = isinstance(record, r.Asked | r.Resumed | r.Retried)
        assert resuming or (self.ended is None and not self.stuck), f"{record} after the end"
        _SEE[type(record)](self, record)

    def spawned(self, record: r.Spawned) -> None:
        """Begin."""
        assert self.seen == 1
        self.began_at, self.queued = record.at, record.queued

    def started(self, record: r.Started) -> None:
        """Rules S1 and S3: what it needs has completed, attempts are left, the run goes forward."""
        name, step = record.step, self.plan.steps[record.step]
        assert self.stop is None or (self.stop == "halt" and name in self.waits), f"{name} starts too late"
        assert set(step.needs) <= set(self.completed)
        assert name not in self.flight | self.halted | {*self.completed, *self.broken}
        assert record.attempt == self.attempts[name] + 1 <= step.retry.attempts
        assert self.waits.pop(name, record.at) <= record.at, f"{name} does not wait for its retry"
        self.attempts[name] = record.attempt
        self.flight.add(name)
        self.queued = False

    def _leave(self, name: str) -> None:
        assert name in self.flight, f"{name} is not in flight"
        self.flight.remove(name)
        self.row = 0
        if (self.generation, name, self.attempts[name]) not in self._never:
            self.began.add(name)

    def succeeded(self, record: r.Succeeded) -> None:
        """Rule S7: skipped or not, it has completed."""
        self._leave(record.step)
        self.completed.append(record.step)
        if record.skipped:
            self.skipped.add(record.step)

    def failed(self, record: r.Failed) -> None:
        """Rules S1 and S3: final if no attempt is left, or the run is stopping."""
        name = record.step
        if record.retry_at is not None:
            assert self.stop in (None, "halt")
            assert self.attempts[name] < self.plan.steps[name].retry.attempts
            self._leave(name)
            self.waits[name] = record.retry_at
            return
        if name in self.waits:
            assert self.stop == "failure", f"{name} is given up though the run goes on"
            del self.waits[name]
        else:
            self._leave(name)
        assert record.started is (name in self.began)
        self.broken.append(name)
        if self.stop in (None, "halt"):
            self.stop = "failure"

    def halted_(self, record: r.Halted) -> None:
        """Rule S6."""
        self._leave(record.step)
        self.halted.add(record.step)
        self.stop = self.stop or "halt"

    def cut_(self, record: r.Cut) -> None:
        """Rules S3 and V1: only what is to be cut off."""
        name = record.step
        asked = self.stop == "failure" and self.plan.steps[name].cancel_on_failure
        assert self.cut or asked, f"{name} is cut for no reason"
        if self.waits.pop(name, None) is None:
            self._leave(name)
        self.broken.append(name)

    def asked(self, record: r.Asked) -> None:
        """Section 3 and rule V1."""
        assert record.verb in self.allowed(), f"{record.verb} is not allowed now"
        if record.verb == "cancel" or self.stop != "failure":
            self.stop = record.verb
        self.rolling = record.verb == "undo"
        self.cut, self.stuck, self.queued, self.ended = True, False, False, None

    def expired_(self, record: r.Expired) -> None:
        """Rule S12: once, not too early, and never in a rollback."""
        assert self.plan.timeout is not None
        assert record.at >= self.began_at + self.plan.timeout
        assert not self.rolling
        assert not self.expired
        assert self.stop != "cancel"
        self.expired, self.cut, self.stop, self.queued = True, True, "failure", False

    def rollback_opened(self, _record: r.RollbackOpened) -> None:
        """Rules S3 and S4: nothing is in flight; compensates, then undos, each in its order."""
        assert not self.flight
        assert not self.waits
        assert self.stop in ("failure", "undo")
        self.cause = self.cause or ("failure" if self.stop == "failure" else "undo")
        steps = self.plan.steps
        compensates: list[Entry] = [
            ("compensate", name) for name in self.broken if name in self.began and steps[name].compensate
        ]
        undos: list[Entry] = [
            ("undo", name)
            for name in reversed(self.completed)
            if name not in self.skipped and steps[name].undo
        ]
        self.queue = [entry for entry in compensates + undos if entry not in self.reversed]
        self.rolling, self.left, self.tries = True, set(), 0

    def _first(self, kind: r.HandlerKind, name: str) -> int:
        """Return how many attempts the first handler of the queue may make."""
        assert self.queue
        assert self.queue[0] == (kind, name), f"the {kind} of {name} is not next (S4)"
        handler = self.plan.steps[name].undo if kind == "undo" else self.plan.steps[name].compensate
        assert handler is not None
        self.row = 0
        return handler.retry.attempts

    def handler_failed(self, record: r.HandlerFailed) -> None:
        """Rule S5: no more attempts than its `Retry` allows."""
        self.tries += 1
        assert record.attempt == self.tries < self._first(record.kind, record.step)

    def handler_settled(self, record: r.HandlerSettled) -> None:
        """Rule S5: each once, in its place, and a failure is listed."""
        self._first(record.kind, record.step)
        assert self.queue
        target = self.reversed if record.error is None else self.left
        target.add(self.queue.pop(0))
        self.tries = 0

    def ended_(self, record: r.Ended) -> None:
        """Section 3: how a run may end."""
        assert not self.flight
        assert not self.waits
        assert record.status == self._end()
        self.ended = record.status
        self.stop, self.cut, self.rolling, self.queue = None, False, False, None

    def _end(self) -> str | None:
        if self.queue is not None:
            assert not self.queue, "handlers are left (S5)"
            return "failed" if self.cause == "failure" else "cancelled"
        if self.stop is None:
            assert set(self.completed) == set(self.plan.steps)
            return "completed"
        return {"halt": "halted", "cancel": "cancelled"}.get(self.stop)

    def recovered(self, _record: r.Recovered) -> None:
        """Architecture 5.7: something was in flight."""
        assert self.flight or self.queue
        self.row += 1
        assert self.row <= self.max_recoveries + 1, "not parked in time"

    def parked(self, _record: r.Parked) -> None:
        """Architecture 5.7 and 5.8."""
        self.stuck = True

    def resumed(self, _record: r.Resumed) -> None:
        """Section 3: only what is stuck."""
        assert self.stuck
        self.stuck, self.row = False, 0

    def retried(self, record: r.Retried) -> None:
        """Rule V2: only what failed and was rolled back completely."""
        assert "retry" in self.allowed()
        assert not self.stuck
        self.generation, self.began_at, self.row = self.generation + 1, record.at, 0
        self._begin()


_SEE: dict[type[r.Record], Callable[[Referee, Any], None]] = {
    r.Spawned: Referee.spawned,
    r.Started: Referee.started,
    r.Succeeded: Referee.succeeded,
    r.Failed: Referee.failed,
    r.Halted: Referee.halted_,
    r.Cut: Referee.cut_,
    r.Asked: Referee.asked,
    r.Expired: Referee.expired_,
    r.RollbackOpened: Referee.rollback_opened,
    r.HandlerFailed: Referee.handler_failed,
    r.HandlerSettled: Referee.handler_settled,
    r.Ended: Referee.ended_,
    r.Recovered: Referee.recovered,
    r.Parked: Referee.parked,
    r.Resumed: Referee.resumed,
    r.Retried: Referee.retried,
}
