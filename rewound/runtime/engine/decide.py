"""The rules of one level: a message, or the state itself, leads to records.

`decide` says what a message means, `conclude` what follows from the state alone. `advance.py` applies
both until nothing follows any more, and carries news between levels. The numbers are those of docs/rules.md.

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
from rewound.runtime.engine.state import Phase, RunState
from rewound.runtime.engine.verbs import refusal

__all__ = [
    "at_work",
    "conclude",
    "decide",
    "doomed",
    "due",
    "handler_of",
    "is_body",
    "next_alarm",
    "startable",
]


def decide(plan: Plan, state: RunState, message: m.Message) -> list[r.Record]:
    """Return the records that a message to this level leads to."""
    return _ON[type(message)](plan, state, message)


def is_body(plan: Plan, name: str) -> bool:
    """Whether a step has a body of its own, rather than a composed child or elements."""
    step = plan.steps[name]
    return step.child is None and step.map is None


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


# -- what the state alone leads to


def conclude(state: RunState, at: float) -> r.Record | None:
    """Return what follows from the state alone, if anything does."""
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
    ):
        return []
    records, count = _settles(plan, state, message), message.count
    if records and count is not None:
        records.append(r.Counted(message.at, message.step, count.started, count.completed, count.left))
    return records


def _settles(plan: Plan, state: RunState, message: m.Settled) -> list[r.Record]:
    match message.result:
        case m.Success(value, skipped):
            return [r.Succeeded(message.at, message.step, value, skipped)]
        case m.Halting(reason):
            return [r.Halted(message.at, message.step, reason)]
        case m.Interrupted():
            return _cut(message.at, {message.step} & (doomed(plan, state) | _told_to_stop(plan, state)))
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
        return [r.HandlerSettled(message.at, message.step, message.kind, left=message.left)]
    retry = handler_of(plan, message.kind, message.step).retry
    if failure.retryable and message.attempt < retry.attempts:
        retry_at = message.at + retry.wait(message.attempt, failure.random)
        return [
            r.HandlerFailed(message.at, message.step, message.kind, message.attempt, retry_at, failure.error)
        ]
    return [r.HandlerSettled(message.at, message.step, message.kind, failure.error)]


def handler_of(plan: Plan, kind: r.HandlerKind, step: str) -> HandlerPlan:
    """Return a step's undo or compensate, or a map's `undo_all`; its place in the rollback says it exists."""
    of, handler = plan.steps[step], None
    match kind:
        case "undo":
            handler = of.undo
        case "compensate":
            handler = of.compensate
        case _:
            handler = of.map.undo_all if of.map is not None else None
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
        return [r.Resumed(message.at) if state.status == "stuck" else r.Retried(message.at)]
    if message.verb == state.stop == "cancel" and state.status != "stuck":
        return []  # its bodies are ending already
    return _stop(plan, state, m.Stop(message.at, message.verb, message.reason, idle=state.status == "stuck"))


def _stop(plan: Plan, state: RunState, message: m.Stop) -> list[r.Record]:
    """Stop a level. In an idle one nothing is running: what was in flight has been cut off by that."""
    asked = r.Asked(message.at, message.verb, message.reason, message.cut)
    ended = sorted(name for name in state.in_flight if is_body(plan, name)) if message.idle else []
    return [asked, *_cut(message.at, ended), *_cut(message.at, sorted(state.retrying))]


def _cut(at: float, names: Iterable[str]) -> list[r.Record]:
    return [r.Cut(at, name) for name in names]


def _adopted(plan: Plan, state: RunState, message: m.Adopted) -> list[r.Record]:
    """Go on with a stored run. What was to be cut when its process died has been cut by that."""
    return _cut(message.at, sorted(doomed(plan, state)))


def at_work(plan: Plan, state: RunState, at: float) -> tuple[list[str], list[str]]:
    """Name what was running in a level when its process died: what runs again, and what was to be cut."""
    ended = doomed(plan, state)
    again = sorted(name for name in state.in_flight - ended if is_body(plan, name))
    waited = state.handler_retry_at is not None and state.handler_retry_at > at
    if state.queue and not waited and (is_body(plan, state.queue[0][1]) or state.queue[0][0] == "undo_all"):
        again.append(f"the {' of '.join(state.queue[0])}")
    return again, sorted(ended)


def doomed(plan: Plan, state: RunState) -> set[str]:
    """Return the bodies in flight that are to be cut off rather than left to settle."""
    if state.cut:
        return {name for name in state.in_flight if is_body(plan, name)}
    if state.stop == "failure":
        return {name for name in state.in_flight if plan.steps[name].cancel_on_failure}
    return set()


def _told_to_stop(plan: Plan, state: RunState) -> set[str]:
    """Return the composed children and maps in flight that a stopping level has told to stop."""
    stopping = state.stop in ("failure", "undo", "cancel")
    return {name for name in state.in_flight if stopping and not is_body(plan, name)}


def _refused(_plan: Plan, state: RunState, message: m.Refused) -> list[r.Record]:
    return [] if state.terminal else [r.Parked(message.at, message.reason)]


_ON: dict[type[m.Message], Callable[[Plan, RunState, Any], list[r.Record]]] = {
    m.Settled: _settled,
    m.HandlerDone: _handler_done,
    m.Tick: _tick,
    m.Verb: _verb,
    m.Adopted: _adopted,
    m.Refused: _refused,
    m.Stop: _stop,
}
