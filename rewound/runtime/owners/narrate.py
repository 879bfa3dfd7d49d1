"""What an owner's records say in the log."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from rewound.runtime.engine import RunState
from rewound.runtime.engine import records as r
from rewound.runtime.logs import log_event
from rewound.runtime.outcomes import StepError

__all__ = ["narrate"]

_runs = logging.getLogger("rewound.run")
_steps = logging.getLogger("rewound.step")


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
    debug = _steps.isEnabledFor(logging.DEBUG) or _runs.isEnabledFor(logging.INFO)
    for record in records:
        match record:
            case r.Failed() | r.HandlerSettled() | r.HandlerFailed() | r.Parked():
                _tell_trouble(reactor, run_id, record, inputs())
            case _ if debug:
                _tell(reactor, run_id, state, record)
            case _:
                pass


def _tell(reactor: str, run_id: str, state: RunState, record: r.Record) -> None:
    names: dict[str, Any] = {"reactor": reactor, "run": run_id}
    match record:
        case r.Started(_, step, attempt):
            log_event("rewound.step.started", logging.DEBUG, **names, step=step, attempt=attempt)
        case r.Succeeded(_, step, _, skipped):
            log_event(
                "rewound.step.skipped" if skipped else "rewound.step.succeeded",
                logging.DEBUG,
                **names,
                step=step,
            )
        case r.Halted(_, step, reason):
            log_event("rewound.step.halted", **names, step=step, reason=reason)
        case r.Cut(_, step):
            log_event("rewound.step.cut", **names, step=step)
        case r.Spawned():
            log_event("rewound.run.spawned", logging.DEBUG, **names)
        case r.Asked(_, verb, reason):
            log_event(f"rewound.run.{verb}", **names, reason=reason or None)
        case r.Expired(_, timeout):
            log_event("rewound.run.expired", logging.WARNING, **names, timeout=timeout)
        case r.RollbackOpened():
            log_event("rewound.rollback.opened", **names, handlers=len(state.queue or ()))
        case r.Ended(_, status):
            level = logging.INFO if status != "completed" or state.generation else logging.DEBUG
            failures = len(state.rollback_failures)
            log_event("rewound.run.ended", level, **names, status=status, rollback_failures=failures or None)
        case _:
            log_event(f"rewound.run.{type(record).__name__.lower()}", **names)


def _tell_trouble(reactor: str, run_id: str, record: r.Record, inputs: object) -> None:
    names: dict[str, Any] = {"reactor": reactor, "run": run_id}
    match record:
        case r.Failed(at, step, error, started, retry_at):
            event = "rewound.step.failed" if retry_at is None else "rewound.step.retrying"
            delay = None if retry_at is None else round(retry_at - at, 3)
            log_event(
                event,
                logging.WARNING,
                **names,
                step=step,
                inputs=inputs,
                **_reason(error),
                started=started,
                delay=delay,
            )
        case r.HandlerSettled(_, step, kind, None):
            log_event("rewound.rollback.settled", logging.DEBUG, **names, step=step, kind=kind)
        case r.HandlerSettled(_, step, kind, StepError() as error):
            log_event(
                "rewound.rollback.failed",
                logging.ERROR,
                **names,
                step=step,
                kind=kind,
                inputs=inputs,
                **_reason(error),
            )
        case r.HandlerFailed(at, step, kind, attempt, retry_at):
            delay = round(retry_at - at, 3)
            log_event(
                "rewound.rollback.retrying",
                logging.WARNING,
                **names,
                step=step,
                kind=kind,
                attempt=attempt,
                delay=delay,
            )
        case r.Parked(_, reason):
            log_event("rewound.run.stuck", logging.ERROR, **names, inputs=inputs, reason=reason)
        case _:
            pass


def _reason(error: StepError) -> dict[str, Any]:
    return {"error": error.type, "reason": error.message, "attempt": error.attempts}
