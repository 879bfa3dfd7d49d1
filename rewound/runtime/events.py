"""What a user sees of a run's journal while it grows."""

from typing import Any

from msgspec import Struct

from rewound.runtime.engine import records as r
from rewound.runtime.outcomes import StepError

__all__ = ["RunEvent", "event_of"]


class RunEvent(Struct, frozen=True):
    """One fact about a run.

    Args:
        at: when it was recorded, unix seconds on the storage's clock.
        name: such as `step.started`, `step.failed`, `rollback.opened`, `run.ended`, `child.ended`.
        step: the step it is about, if any.
        detail: more, as plain values: `attempt`, `error`, `message`, `kind`, `status`, `reason`; of
            elements `started`, `completed`, `failed_rollbacks`.
    """

    at: float
    name: str
    step: str | None = None
    detail: dict[str, Any] = {}


def event_of(record: r.Record) -> RunEvent:
    """Translate a record. A fact of a composed child names its steps from the root, such as `audit/check`."""
    if isinstance(record, r.Within):
        inner, child = event_of(record.record), "/".join(record.path)
        name = inner.name.replace("run.", "child.", 1) if inner.name.startswith("run.") else inner.name
        return RunEvent(
            inner.at, name, child if inner.step is None else f"{child}/{inner.step}", inner.detail
        )
    told = _told(record) or _told_of_handler(record) or _told_of_map(record) or _told_of_run(record)
    name, step, detail = told
    return RunEvent(record.at, name, step, detail)


_Told = tuple[str, str | None, dict[str, Any]]


def _told(record: r.Record) -> _Told | None:
    match record:
        case r.Started(_, step, attempt):
            return "step.started", step, {"attempt": attempt}
        case r.Succeeded(_, step, _, skipped):
            return "step.skipped" if skipped else "step.succeeded", step, {}
        case r.Failed(_, step, error, started, retry_at):
            detail = {"attempt": error.attempts, "started": started, **_why(error)}
            return "step.failed" if retry_at is None else "step.retrying", step, detail
        case r.Halted(_, step, reason):
            return "step.halted", step, {"reason": reason}
        case r.Cut(_, step):
            return "step.cut", step, {}
        case _:
            return None


def _told_of_handler(record: r.Record) -> _Told | None:
    match record:
        case r.HandlerFailed(_, step, kind, attempt, _, error):
            why = {} if error is None else _why(error)
            return "rollback.retrying", step, {"kind": kind, "attempt": attempt, **why}
        case r.HandlerSettled(_, step, kind, None):
            return "rollback.settled", step, {"kind": kind}
        case r.HandlerSettled(_, step, kind, StepError() as error):
            return "rollback.failed", step, {"kind": kind, **_why(error)}
        case r.RollbackOpened():
            return "rollback.opened", None, {}
        case _:
            return None


def _told_of_map(record: r.Record) -> _Told | None:
    if not isinstance(record, r.Counted):
        return None
    detail = {"started": record.started, "completed": record.completed, "failed_rollbacks": record.left}
    return "map.settled", record.step, detail


def _told_of_run(record: r.Record) -> _Told:
    match record:
        case r.Spawned(_, _, reactor, version):
            return "run.spawned", None, {"reactor": reactor, "version": version}
        case r.Asked(_, verb, reason):
            return f"run.{verb}", None, {"reason": reason}
        case r.Ended(_, status):
            return "run.ended", None, {"status": status}
        case r.Parked(_, reason):
            return "run.stuck", None, {"reason": reason}
        case r.Expired(_, timeout):
            return "run.expired", None, {"timeout": timeout}
        case _:
            return f"run.{type(record).__name__.lower()}", None, {}


def _why(error: StepError) -> dict[str, Any]:
    return {"error": error.type, "message": error.message}
