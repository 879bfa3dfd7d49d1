"""What each record changes in a run's state.

`apply` is the only function that changes a state because something was recorded, and it decides nothing:
every rule stands in `decide.py`. An owner keeps one state and applies each record it has decided on; after
a crash `fold` gives the same state again.
"""

from collections.abc import Callable, Iterable
from typing import Any

from rewound.runtime.declare import Plan
from rewound.runtime.engine import records as r
from rewound.runtime.engine.state import Entry, Phase, RunState, StepState
from rewound.runtime.outcomes import RollbackFailure, StepError

__all__ = ["apply", "child_of", "fold"]


def fold(plan: Plan, records: Iterable[r.Record]) -> RunState:
    """Add up a journal."""
    state = RunState()
    for record in records:
        apply(plan, state, record)
    return state


def apply(plan: Plan, state: RunState, record: r.Record) -> None:
    """Change `state` by one record."""
    _APPLY[type(record)](plan, state, record)


def _within(plan: Plan, state: RunState, record: r.Within) -> None:
    level, inner = state, plan
    for name in record.path:
        inner = child_of(inner, name)
        # counted on from its parent's: what reports late from an earlier generation settles nothing (O4)
        fresh = RunState(generation=level.generation, rollbacks=level.rollbacks)
        level = level.children.setdefault(name, fresh)
    apply(inner, level, record.record)
    if isinstance(record.record, _SETTLING):
        state.recoveries = 0


def child_of(plan: Plan, step: str) -> Plan:
    """Return the plan of a composed child."""
    child = plan.steps[step].child
    if child is None:
        raise LookupError(f"{plan.name}.{step} composes nothing")
    return child


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
        if dependent.missing == 0:
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
        # elements do not record what begins: the error knows which attempt it was
        step.attempt = max(step.attempt, record.error.attempts)
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
    state.cut, state.reason, state.stuck = state.cut or record.cut, record.reason, None
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
    again = state.cause is not None
    if state.cause is None:
        state.cause = "failure" if state.stop == "failure" else "undo"
    state.rolled = {entry: failure for entry, failure in state.rolled.items() if failure is None}
    owing = {name for name, child in state.children.items() if _owes_rollback(child, again=again)}
    owing |= {name for name, left in state.maps_left.items() if left}
    owing |= {
        name
        for name, step in state.steps.items()
        if plan.steps[name].map is not None and step.began and not again
    }
    order = _rollback_order(plan, state, owing)
    state.queue = [entry for entry in order if entry not in state.rolled or _is_again(entry, owing)]


def _is_again(entry: Entry, owing: set[str]) -> bool:
    """Whether an entry that has settled comes up once more, because something in it has failed."""
    kind, name = entry
    return kind != "undo_all" and name in owing


def _rollback_order(plan: Plan, state: RunState, owing: set[str]) -> list[Entry]:
    """Rule S4: compensates in the order of the failures, then undos, newest completion first.

    A composed child is one entry in its place, undone as a whole (rule C1). One that failed has rolled
    itself back; it is an entry only if it still owes something (`owing`).
    """
    halted = [name for name, step in state.steps.items() if step.phase is Phase.HALTED and name in owing]
    order: list[Entry] = [("compensate", name) for name in halted]
    for name in state.failures:
        step, has_one = state.steps[name], plan.steps[name].compensate is not None
        if (step.began and has_one) or name in owing:
            order.append(("compensate", name))
        order += _bulk(plan, state, name)
    for name in reversed(state.completions):
        step, has_one = state.steps[name], plan.steps[name].undo is not None
        if (step.phase is Phase.SUCCEEDED and has_one) or name in owing:
            order.append(("undo", name))
        order += _bulk(plan, state, name)
    return order


def _bulk(plan: Plan, state: RunState, name: str) -> list[Entry]:
    """Rule R12: one call takes back what a map has completed, once the rest of it has been taken back."""
    mapped = plan.steps[name].map
    _, completed = state.counts.get(name, (0, 0))
    return [("undo_all", name)] if mapped is not None and mapped.undo_all is not None and completed else []


def _owes_rollback(child: RunState, *, again: bool) -> bool:
    """Whether a composed child has something left to take back.

    One that completed, halted or was cancelled has; one that rolled itself back has not, unless this is
    the undo by hand that repeats what failed (`again`).
    """
    return child.cause is None or (again and bool(child.rollback_failures or child.left))


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
    if record.kind != "undo_all" and (record.left or record.step in state.maps_left):
        state.maps_left[record.step] = record.left
    state.handler_attempt, state.handler_retry_at, state.recoveries = 0, None, 0


def _counted(_plan: Plan, state: RunState, record: r.Counted) -> None:
    state.counts[record.step] = (record.started, record.completed)
    if record.left:
        state.maps_left[record.step] = record.left


def _ended(_plan: Plan, state: RunState, record: r.Ended) -> None:
    state.status, state.queue = record.status, None


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


_SETTLING = (r.Succeeded, r.Failed, r.Halted, r.Cut, r.HandlerFailed, r.HandlerSettled)

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
    r.Counted: _counted,
    r.Within: _within,
}
