"""What an owner's records say in the log."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from rewound.runtime.engine import RunState, first_failure
from rewound.runtime.engine import records as r
from rewound.runtime.logs import log_event
from rewound.runtime.outcomes import StepError

__all__ = ["narrate"]

_LOGGERS = tuple(logging.getLogger(f"rewound.{kind}") for kind in ("run", "step", "rollback"))


def narrate(
    reactor: str, run_id: str, state: RunState, records: Iterable[r.Record], inputs: Callable[[], object]
) -> None:
    """Log stored records, one event each.

    Args:
        reactor: the reactor's stored name.
        run_id: the run.
        state: its state, the records included.
        records: what was stored.
        inputs: gives the run's inputs, redacted; they go with every failure.
    """
    listening = any(logger.isEnabledFor(logging.INFO) for logger in _LOGGERS)
    for record in records:
        names = {"reactor": reactor, "run": run_id}
        if isinstance(record, r.Within):
            child, own = _child_at(state, record.path), record.record
            _narrate_one({**names, "child": "/".join(record.path)}, child, own, inputs, listening=listening)
        else:
            _narrate_one(names, state, record, inputs, listening=listening)


def _child_at(state: RunState, path: Iterable[str]) -> RunState:
    for name in path:
        state = state.children.get(name, state)  # a retry may have dropped it in the same batch
    return state


def _narrate_one(
    names: dict[str, Any], state: RunState, record: r.Record, inputs: Callable[[], object], *, listening: bool
) -> None:
    if isinstance(record, _TROUBLE) and not (isinstance(record, r.HandlerSettled) and not record.error):
        _tell_trouble({**names, "inputs": inputs()}, record)
    elif isinstance(record, r.Ended) and record.status == "failed":
        _tell_failure({**names, "inputs": inputs()}, state)
    elif listening:
        _tell(names, state, record)


_TROUBLE = (r.Failed, r.HandlerSettled, r.HandlerFailed, r.Parked, r.Expired)


def _tell(names: dict[str, Any], state: RunState, record: r.Record) -> None:
    match record:
        case r.Started(_, step, attempt):
            log_event("rewound.step.started", logging.DEBUG, **names, step=step, attempt=attempt)
        case r.Succeeded(_, step, _, skipped):
            event = "rewound.step.skipped" if skipped else "rewound.step.succeeded"
            log_event(event, logging.DEBUG, **names, step=step)
        case r.Halted(_, step, reason):
            log_event("rewound.step.halted", **names, step=step, reason=reason)
        case r.Cut(_, step):
            log_event("rewound.step.cut", **names, step=step)
        case r.Counted(_, step, started, completed, left):
            names |= {"step": step, "started": started, "completed": completed, "left": left or None}
            log_event("rewound.map.settled", logging.DEBUG, **names)
        case r.HandlerSettled(_, step, kind):
            log_event("rewound.rollback.settled", logging.DEBUG, **names, step=step, kind=kind)
        case r.RollbackOpened():
            log_event("rewound.rollback.opened", **names, handlers=len(state.queue or ()))
        case _:
            _tell_of_run(names, state, record)


def _tell_of_run(names: dict[str, Any], state: RunState, record: r.Record) -> None:
    match record:
        case r.Spawned():
            log_event("rewound.run.spawned", logging.DEBUG, **names)
        case r.Asked(_, verb, reason):
            log_event(f"rewound.run.{verb}", **names, reason=reason or None)
        case r.Ended(_, status):
            level = logging.INFO if status != "completed" or state.generation else logging.DEBUG
            failures = len(state.rollback_failures) + state.left
            log_event("rewound.run.ended", level, **names, status=status, rollback_failures=failures or None)
        case _:  # recovered, resumed, retried
            log_event(f"rewound.run.{type(record).__name__.lower()}", **names)


def _tell_failure(names: dict[str, Any], state: RunState) -> None:
    """Tell of a failed run. Which step failed, and why, is told once more: a line must stand alone."""
    error = first_failure(state)
    told: dict[str, Any] = {} if error is None else {"step": error.step or None, **_reason(error)}
    failures = len(state.rollback_failures) + state.left or None
    log_event(
        "rewound.run.ended", logging.WARNING, **names, status="failed", **told, rollback_failures=failures
    )


def _tell_trouble(names: dict[str, Any], record: r.Record) -> None:
    told: dict[str, Any]
    match record:
        case r.Failed(at, step, error, started, retry_at):
            event = "rewound.step.failed" if retry_at is None else "rewound.step.retrying"
            delay = None if retry_at is None else round(retry_at - at, 3)
            told = {"step": step, "started": started, "delay": delay, **_reason(error)}
            log_event(event, logging.WARNING, **names, **told)
        case r.HandlerSettled(_, step, kind, StepError() as error):
            told = {"step": step, "kind": kind, **_reason(error)}
            log_event("rewound.rollback.failed", logging.ERROR, **names, **told)
        case r.HandlerFailed(at, step, kind, attempt, retry_at, error):
            why = {} if error is None else _reason(error)
            told = {"step": step, "kind": kind, "delay": round(retry_at - at, 3), **why, "attempt": attempt}
            log_event("rewound.rollback.retrying", logging.WARNING, **names, **told)
        case r.Expired(_, timeout):
            reason = f"the run took longer than its timeout of {timeout:g} s"
            log_event("rewound.run.expired", logging.WARNING, **names, reason=reason)
        case r.Parked(_, reason):
            log_event("rewound.run.stuck", logging.ERROR, **names, reason=reason)
        case _:  # pragma: no cover - no other record is trouble
            pass


def _reason(error: StepError) -> dict[str, Any]:
    return {"error": error.type, "reason": error.message, "attempt": error.attempts}
