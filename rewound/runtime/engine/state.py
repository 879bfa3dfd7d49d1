"""The state of a run: what its records add up to.

`apply` is the only function that changes a state, and it decides nothing: every rule stands in
`decide.py`. An owner keeps one state and applies each record it has decided on; after a crash `fold`
gives the same state again.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Literal

from msgspec import Struct

from rewound.runtime.declare import Plan
from rewound.runtime.engine import records as r
from rewound.runtime.outcomes import RollbackFailure, StepError

__all__ = ["TERMINAL", "Entry", "Phase", "RunState", "Status", "StepState", "apply", "fold"]

Status = Literal[
    "queued", "running", "paused", "rolling_back", "completed", "failed", "halted", "cancelled", "stuck"
]
Entry = tuple[r.HandlerKind, str]
"""One handler of the rollback: its kind and its step."""

TERMINAL: frozenset[str] = frozenset({"completed", "failed", "halted", "cancelled"})


class Phase(Enum):
    """Where one step is."""

    WAITING = "waiting"  # for its needs, or for a slot
    STARTED = "started"
    RETRYING = "retrying"  # its last attempt failed, the next is due at `retry_at`
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    FAILED = "failed"
    CUT = "cut"
    HALTED = "halted"


COMPLETE = (Phase.SUCCEEDED, Phase.SKIPPED)


class StepState(Struct):
    """One step of a run.

    `missing` counts the needs that have not completed. `began`: some attempt's body has begun, leaving
    aside the one in flight, which may turn out not to have (rule S2).
    """

    missing: int
    phase: Phase = Phase.WAITING
    attempt: int = 0
    began: bool = False
    value: bytes | None = None
    error: StepError | None = None
    retry_at: float | None = None


class RunState(Struct):
    """One run.

    Args:
        steps: every step of the plan.
        ready: steps that may begin as soon as there is a slot, in the order they became ready.
        in_flight: steps whose body is listed as started and has not settled.
        open_steps: how many steps have not completed.
        completions: steps in the order in which they completed.
        failures: steps that failed or were cut off, in the order of their records.
        stop: why no new step starts; `None` while the run moves forward.
        cut: bodies in flight are to be cut off (not left to settle).
        overdue: the run's timeout has passed; `expired` is set if that is what failed it.
        cause: why the rollback of this generation began first.
        rollbacks: how many rollbacks have opened, in all generations.
        queue: handlers still to run, next first; `None` before the rollback opened.
        rolled: handlers that settled, each with its failure or `None`.
        handler_attempt: attempts made so far by the first handler of the queue.
        recoveries: takeovers in a row with a body in flight and nothing settled in between.
        stuck: why the run is parked; `parked_in` is the status it had.
    """

    inputs: bytes = b""
    version: int = 0
    shape: Any = None
    status: Status = "running"
    generation: int = 0
    began_at: float = 0.0
    steps: dict[str, StepState] = {}
    ready: list[str] = []
    in_flight: set[str] = set()
    retrying: set[str] = set()
    open_steps: int = 0
    completions: list[str] = []
    failures: list[str] = []
    halt: tuple[str, str] | None = None
    stop: Literal["failure", "halt", "undo", "cancel"] | None = None
    cut: bool = False
    reason: str = ""
    overdue: bool = False
    expired: StepError | None = None
    cause: Literal["failure", "undo"] | None = None
    rollbacks: int = 0
    queue: list[Entry] | None = None
    rolled: dict[Entry, RollbackFailure | None] = {}
    handler_attempt: int = 0
    handler_retry_at: float | None = None
    recoveries: int = 0
    stuck: str | None = None
    parked_in: Status = "running"

    @property
    def terminal(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL

    @property
    def rollback_failures(self) -> list[RollbackFailure]:
        """The undos and compensates that failed, in the order of their records."""
        return [failure for failure in self.rolled.values() if failure is not None]


def fold(plan: Plan, records: Iterable[r.Record]) -> RunState:
    """Add up a journal."""
    state = RunState()
    for record in records:
        apply(plan, state, record)
    return state


def apply(plan: Plan, state: RunState, record: r.Record) -> None:
    """Change `state` by one record."""
    _APPLY[type(record)](plan, state, record)


def _spawned(plan: Plan, state: RunState, record: r.Spawned) -> None:
    state.inputs, state.version, state.shape = record.inputs, record.version, record.shape
    state.status = "queued" if record.queued else "running"
    _begin_generation(plan, state, record.at)


def _begin_generation(plan: Plan, state: RunState, at: float) -> None:
    state.began_at = at
    state.steps = {name: StepState(len(step.needs)) for name, step in plan.steps.items()}
    state.ready = list(plan.roots)
    state.open_steps = len(plan.steps)


def _started(_plan: Plan, state: RunState, record: r.Started) -> None:
    step = state.steps[record.step]
    step.phase, step.attempt, step.retry_at = Phase.STARTED, record.attempt, None
    state.in_flight.add(record.step)
    state.retrying.discard(record.step)
    if record.step in state.ready:
        state.ready.remove(record.step)
    if state.status == "queued":
        state.status = "running"


def _settle(state: RunState, name: str, phase: Phase, *, began: bool = True) -> StepState:
    """Take a step out of whatever it was doing. Anything settled ends a row of recoveries."""
    step = state.steps[name]
    step.began = step.began or (began and name in state.in_flight)
    step.phase, step.retry_at = phase, None
    state.in_flight.discard(name)
    state.retrying.discard(name)
    if name in state.ready:
        state.ready.remove(name)
    state.recoveries = 0
    return step


def _succeeded(plan: Plan, state: RunState, record: r.Succeeded) -> None:
    step = _settle(state, record.step, Phase.SKIPPED if record.skipped else Phase.SUCCEEDED)
    step.value = record.value
    state.completions.append(record.step)
    state.open_steps -= 1
    for name in plan.dependents.get(record.step, ()):
        dependent = state.steps[name]
        dependent.missing -= 1
        if dependent.missing == 0 and dependent.phase is Phase.WAITING:
            state.ready.append(name)


def _failed(_plan: Plan, state: RunState, record: r.Failed) -> None:
    final = record.retry_at is None
    step = _settle(state, record.step, Phase.FAILED if final else Phase.RETRYING, began=record.started)
    step.error = record.error
    if final:
        state.failures.append(record.step)
        if state.stop in (None, "halt"):
            state.stop = "failure"
    else:
        step.retry_at = record.retry_at
        state.retrying.add(record.step)


def _halted(_plan: Plan, state: RunState, record: r.Halted) -> None:
    _settle(state, record.step, Phase.HALTED)
    state.halt = state.halt or (record.step, record.reason)
    state.stop = state.stop or "halt"


def _cut(_plan: Plan, state: RunState, record: r.Cut) -> None:
    _settle(state, record.step, Phase.CUT)
    state.failures.append(record.step)


def _asked(_plan: Plan, state: RunState, record: r.Asked) -> None:
    state.cut, state.reason, state.stuck = True, record.reason, None
    state.status = "running" if record.verb == "cancel" else "rolling_back"
    if record.verb == "cancel" or state.stop != "failure":
        state.stop = record.verb


def _expired(_plan: Plan, state: RunState, record: r.Expired) -> None:
    if state.stop != "failure":
        message = f"the run took longer than its timeout of {record.timeout:g} s"
        state.expired = StepError("TimeoutError", message, "", 0)
    state.overdue, state.stop, state.cut = True, "failure", True


def _rollback_opened(plan: Plan, state: RunState, _record: r.RollbackOpened) -> None:
    state.status = "rolling_back"
    state.rollbacks += 1
    if state.cause is None:
        state.cause = "failure" if state.stop == "failure" else "undo"
    state.rolled = {entry: failure for entry, failure in state.rolled.items() if failure is None}
    state.queue = [entry for entry in _rollback_order(plan, state) if entry not in state.rolled]


def _rollback_order(plan: Plan, state: RunState) -> list[Entry]:
    """Rule S4: compensates in the order of the failures, then undos, newest completion first."""
    compensates: list[Entry] = [
        ("compensate", name)
        for name in state.failures
        if state.steps[name].began and plan.steps[name].compensate is not None
    ]
    undos: list[Entry] = [
        ("undo", name)
        for name in reversed(state.completions)
        if state.steps[name].phase is Phase.SUCCEEDED and plan.steps[name].undo is not None
    ]
    return compensates + undos


def _handler_failed(_plan: Plan, state: RunState, record: r.HandlerFailed) -> None:
    state.handler_attempt, state.handler_retry_at = record.attempt, record.retry_at
    state.recoveries = 0


def _handler_settled(_plan: Plan, state: RunState, record: r.HandlerSettled) -> None:
    entry: Entry = (record.kind, record.step)
    error = record.error
    state.rolled[entry] = (
        None if error is None else RollbackFailure(record.step, record.kind, error.type, error.message)
    )
    if state.queue and entry in state.queue:
        state.queue.remove(entry)
    state.handler_attempt, state.handler_retry_at, state.recoveries = 0, None, 0


def _ended(_plan: Plan, state: RunState, record: r.Ended) -> None:
    state.status, state.queue = record.status, None
    state.stop, state.cut = None, False
    state.ready.clear()


def _recovered(_plan: Plan, state: RunState, _record: r.Recovered) -> None:
    state.recoveries += 1


def _parked(_plan: Plan, state: RunState, record: r.Parked) -> None:
    if state.status != "stuck":
        state.parked_in = state.status
    state.status, state.stuck = "stuck", record.reason


def _resumed(_plan: Plan, state: RunState, _record: r.Resumed) -> None:
    state.status, state.stuck, state.recoveries = state.parked_in, None, 0


def _retried(plan: Plan, state: RunState, record: r.Retried) -> None:
    fresh = RunState(
        inputs=state.inputs,
        version=state.version,
        shape=state.shape,
        generation=state.generation + 1,
        rollbacks=state.rollbacks,
    )
    for name in RunState.__struct_fields__:
        setattr(state, name, getattr(fresh, name))
    _begin_generation(plan, state, record.at)


_APPLY: dict[type[r.Record], Callable[[Plan, RunState, Any], None]] = {
    r.Spawned: _spawned,
    r.Started: _started,
    r.Succeeded: _succeeded,
    r.Failed: _failed,
    r.Halted: _halted,
    r.Cut: _cut,
    r.Asked: _asked,
    r.Expired: _expired,
    r.RollbackOpened: _rollback_opened,
    r.HandlerFailed: _handler_failed,
    r.HandlerSettled: _handler_settled,
    r.Ended: _ended,
    r.Recovered: _recovered,
    r.Parked: _parked,
    r.Resumed: _resumed,
    r.Retried: _retried,
}
