"""The rules: a message, or the state itself, leads to records.

`advance` is the one entry. It decides what a message means (`_ON`), applies those records, and then
lets the state conclude (`_conclude`) until nothing follows any more. The numbers are those of
rollback.md.

Forward
    A step that returns completes (S7: or is skipped). One that raises fails (S1): while its `Retry` has
    attempts left it is due again after a delay, otherwise the failure is final. The first final failure
    stops the run (S3): no step starts any more, siblings in flight settle, those that declare
    `cancel_on_failure` are cut, those that only wait for another attempt have failed. `Halt` stops it
    too (S6), but siblings keep their attempts, and one that fails for good turns it into a failure.
    When nothing is left to run, the run is completed.

Backward
    Once a stopped run has nothing in flight: after a failure or an undo the rollback opens (S4), after
    a halt or a cancel the run ends. Handlers run one at a time; each settles once, whatever it raised
    (S5, S9). When none is left the run is failed, or cancelled if an undo was the cause.

By hand
    undo and cancel cut the bodies in flight (V1); `verbs.py` says when they are allowed. retry starts a
    new generation (V2), or lets a stuck run go on.

Late and double messages
    A settle signal for an attempt that is not in flight, for another generation, or for an ended run
    leads to no record (O4).
"""

from collections.abc import Callable, Iterable
from typing import Any

from rewound.runtime.declare import HandlerPlan, Plan
from rewound.runtime.engine import messages as m
from rewound.runtime.engine import records as r
from rewound.runtime.engine.changes import apply
from rewound.runtime.engine.state import Phase, RunState
from rewound.runtime.engine.verbs import refusal

__all__ = ["advance", "due", "next_alarm", "start"]


def advance(plan: Plan, state: RunState, message: m.Message) -> list[r.Record]:
    """Return the records that a message leads to, and apply them to `state`."""
    records: list[r.Record] = []
    _take(plan, state, _ON[type(message)](plan, state, message), records)
    while conclusion := _conclude(state, message.at):
        _take(plan, state, [conclusion], records)
    return records


def start(plan: Plan, state: RunState, at: float, slots: int) -> list[r.Started]:
    """Begin up to `slots` ready steps, oldest first, and apply that to `state`."""
    started = [r.Started(at, name, state.steps[name].attempt + 1) for name in startable(state)[:slots]]
    for record in started:
        apply(plan, state, record)
    return started


def startable(state: RunState) -> list[str]:
    """List the steps that may begin now; none once the run stops, but for the attempts a halt leaves."""
    if state.status not in ("running", "queued") or state.stop not in (None, "halt"):
        return []
    if state.stop == "halt":
        return [name for name in state.ready if name in state.retrying]
    return state.ready


def due(state: RunState, at: float) -> None:
    """End the waits for a retry that are over. Nothing is recorded: `Started` will be, or a settling."""
    if state.handler_retry_at is not None and state.handler_retry_at <= at:
        state.handler_retry_at = None
    for name in sorted(state.retrying):
        retry_at = state.steps[name].retry_at
        if retry_at is not None and retry_at <= at and name not in state.ready:
            state.ready.append(name)


def next_alarm(plan: Plan, state: RunState) -> float | None:
    """Return when the run wants its next `Tick`, or `None`."""
    if state.terminal or state.status == "stuck":
        return None
    times = [state.steps[name].retry_at for name in state.retrying if name not in state.ready]
    if state.queue is not None:
        times.append(state.handler_retry_at)
    elif plan.timeout is not None and _may_expire(state):
        times.append(state.began_at + plan.timeout)
    return min((time for time in times if time is not None), default=None)


def _may_expire(state: RunState) -> bool:
    """Rule S12: a run's timeout covers its way forward and what is in flight then, never a rollback."""
    forward = state.status in ("queued", "running", "paused")
    return forward and not state.overdue and state.stop != "cancel"


def _take(plan: Plan, state: RunState, new: Iterable[r.Record], records: list[r.Record]) -> None:
    for record in new:
        apply(plan, state, record)
        records.append(record)


# -- what the state alone leads to


def _conclude(state: RunState, at: float) -> r.Record | None:
    if state.terminal or state.status == "stuck" or state.in_flight:
        return None
    if state.queue is not None:
        return None if state.queue else r.Ended(at, "failed" if state.cause == "failure" else "cancelled")
    match state.stop:
        case None:
            return None if state.open_steps else r.Ended(at, "completed")
        case "failure" | "undo":
            return r.RollbackOpened(at)
        case "cancel":
            return r.Ended(at, "cancelled")
        case _:  # halt
            return None if state.retrying else r.Ended(at, "halted")


# -- what each message leads to


def _settled(plan: Plan, state: RunState, message: m.Settled) -> list[r.Record]:
    step = state.steps.get(message.step)
    if (
        step is None
        or step.phase is not Phase.STARTED
        or step.attempt != message.attempt
        or state.generation != message.generation
        or state.status == "stuck"
    ):
        return []
    match message.result:
        case m.Success(value, skipped):
            return [r.Succeeded(message.at, message.step, value, skipped)]
        case m.Halting(reason):
            return [r.Halted(message.at, message.step, reason)]
        case m.Interrupted():
            return _cut(message.at, {message.step} & doomed(plan, state))
        case failure:
            return _step_failed(plan, state, message, failure)


def _step_failed(plan: Plan, state: RunState, message: m.Settled, failure: m.Failure) -> list[r.Record]:
    retry = plan.steps[message.step].retry
    began = failure.started or state.steps[message.step].began
    if failure.retryable and message.attempt < retry.attempts and state.stop in (None, "halt"):
        retry_at = message.at + retry.wait(message.attempt, failure.random)
        return [r.Failed(message.at, message.step, failure.error, began, retry_at)]
    final = r.Failed(message.at, message.step, failure.error, began)
    return [final, *_give_up_retries(state, message.at)]


def _give_up_retries(state: RunState, at: float) -> list[r.Record]:
    """A run that is taken back makes no further attempts: the last failure of each is final."""
    waiting = [(name, step) for name, step in state.steps.items() if name in state.retrying]
    return [r.Failed(at, name, step.error, step.began) for name, step in waiting if step.error is not None]


def _handler_done(plan: Plan, state: RunState, message: m.HandlerDone) -> list[r.Record]:
    if (
        not state.queue
        or state.status != "rolling_back"
        or state.queue[0] != (message.kind, message.step)
        or message.attempt != state.handler_attempt + 1
        or message.rollback != state.rollbacks
    ):
        return []
    failure = message.failure
    if failure is None:
        return [r.HandlerSettled(message.at, message.step, message.kind)]
    retry = handler_of(plan, message.kind, message.step).retry
    if failure.retryable and message.attempt < retry.attempts:
        retry_at = message.at + retry.wait(message.attempt, failure.random)
        return [
            r.HandlerFailed(message.at, message.step, message.kind, message.attempt, retry_at, failure.error)
        ]
    return [r.HandlerSettled(message.at, message.step, message.kind, failure.error)]


def handler_of(plan: Plan, kind: r.HandlerKind, step: str) -> HandlerPlan:
    """Return a step's undo or compensate, which its place in the rollback says exists."""
    handler = plan.steps[step].undo if kind == "undo" else plan.steps[step].compensate
    if handler is None:  # pragma: no cover - the queue is made of existing handlers
        raise LookupError(f"{plan.name}.{step} has no {kind}")
    return handler


def _tick(plan: Plan, state: RunState, message: m.Tick) -> list[r.Record]:
    if plan.timeout is not None and message.at >= state.began_at + plan.timeout and _may_expire(state):
        return [r.Expired(message.at, plan.timeout), *_give_up_retries(state, message.at)]
    due(state, message.at)
    return []


def _verb(plan: Plan, state: RunState, message: m.Verb) -> list[r.Record]:
    if refusal(state, message.verb) is not None:
        return []
    if message.verb == "retry":
        if state.status != "stuck":
            return [r.Retried(message.at)]
        return [r.Resumed(message.at), *_cut(message.at, sorted(doomed(plan, state)))]
    if message.verb == state.stop == "cancel" and state.status != "stuck":
        return []  # its bodies are ending already
    asked = r.Asked(message.at, message.verb, message.reason)
    ended = sorted(state.in_flight) if state.status == "stuck" else []
    return [asked, *_cut(message.at, ended), *_cut(message.at, sorted(state.retrying))]


def _cut(at: float, names: Iterable[str]) -> list[r.Record]:
    return [r.Cut(at, name) for name in names]


def _adopted(plan: Plan, state: RunState, message: m.Adopted) -> list[r.Record]:
    """Go on with a stored run. What was to be cut when its process died has been cut by that."""
    for name in state.in_flight:  # listed and not settled: it has begun (architecture.md 5.3)
        state.steps[name].began = True
    if state.terminal or state.status == "stuck":
        return []
    ended = doomed(plan, state)
    again = ", ".join(sorted(state.in_flight - ended)) or _handling(state, message.at)
    crashed: list[r.Record] = [r.Recovered(message.at)] if message.crashed and (again or ended) else []
    if crashed and again and state.recoveries >= message.max_recoveries:
        reason = (
            f"its process died {state.recoveries + 1} times in a row while {again} was in flight; "
            "mend that, then retry the run"
        )
        return [*crashed, r.Parked(message.at, reason)]
    return crashed + _cut(message.at, sorted(ended))


def _handling(state: RunState, at: float) -> str:
    """Name the handler that was running, unless it waited for a retry."""
    waited = state.handler_retry_at is not None and state.handler_retry_at > at
    return "" if waited or not state.queue else f"the {' of '.join(state.queue[0])}"


def doomed(plan: Plan, state: RunState) -> set[str]:
    """Return the steps in flight that are to be cut off rather than left to settle."""
    if state.cut:
        return set(state.in_flight)
    if state.stop == "failure":
        return {name for name in state.in_flight if plan.steps[name].cancel_on_failure}
    return set()


def _refused(_plan: Plan, state: RunState, message: m.Refused) -> list[r.Record]:
    return [] if state.terminal or state.status == "stuck" else [r.Parked(message.at, message.reason)]


_ON: dict[type[m.Message], Callable[[Plan, RunState, Any], list[r.Record]]] = {
    m.Settled: _settled,
    m.HandlerDone: _handler_done,
    m.Tick: _tick,
    m.Verb: _verb,
    m.Adopted: _adopted,
    m.Refused: _refused,
}
