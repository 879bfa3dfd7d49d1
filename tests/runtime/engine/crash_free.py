"""Oracle O2: is a journal one that a run without any crash could have written?"""

from rewound.runtime.declare import Plan
from rewound.runtime.engine import Path, RunState, advance, fold, level_at
from rewound.runtime.engine import messages as m
from rewound.runtime.engine import records as r
from rewound.runtime.engine.changes import apply
from rewound.runtime.engine.decide import due, startable
from tests.runtime.engine.world import error_of

__all__ = ["without_crashes"]


def without_crashes(plan: Plan, journal: list[r.Record]) -> None:
    """Lead a run that never crashes through the same history, message by message.

    Takeovers are left out; every other record must come of a message that a run without crashes can get,
    and be the very record. A run that was parked for its crashes is one that no node could go on with.

    Raises:
        AssertionError: the history needs a crash.
    """
    records = [record for record in journal if not isinstance(record, r.Recovered)]
    state, at = fold(plan, records[:1]), 1
    while at < len(records):
        record = records[at]
        path, own = (record.path, record.record) if isinstance(record, r.Within) else ((), record)
        if isinstance(own, r.Started):
            level = level_at(plan, state, path)
            assert level is not None
            due(level.state, own.at)
            assert own.step in startable(level.state), f"{record} needs a crash"
            apply(plan, state, record)
            at += 1
            continue
        opened = _opened(plan, state, path, own) if isinstance(own, r.Spawned) else None
        led_to = advance(plan, state, opened or _message(plan, state, path, own))
        assert led_to, f"{record} needs a crash"
        assert led_to == records[at : at + len(led_to)]
        at += len(led_to)


def _message(plan: Plan, root: RunState, path: Path, record: r.Record) -> m.Message:
    """Return the message that leads to a record of a level."""
    level = level_at(plan, root, path)
    assert level is not None
    state = level.state
    match record:
        case r.Asked(at, verb, reason):
            return m.Verb(at, verb, reason)
        case r.Resumed(at) | r.Retried(at):
            return m.Verb(at, "retry")
        case r.Expired(at):
            return m.Tick(at)
        case r.Parked(at, reason):
            return m.Refused(at, reason)
        case r.Succeeded(at, name) | r.Failed(at, name) | r.Halted(at, name) | r.Cut(at, name):
            attempt, generation = state.steps[name].attempt, state.generation
            return m.Settled(at, name, attempt, generation, _result(record), path)
        case r.HandlerSettled(at, name, kind) | r.HandlerFailed(at, name, kind):
            attempt = state.handler_attempt + 1
            return m.HandlerDone(at, name, kind, attempt, _failure(record), state.rollbacks, path)
        case _:
            raise AssertionError(f"{record} does not come of a message")


def _opened(plan: Plan, root: RunState, path: Path, record: r.Spawned) -> m.Opened:
    parent = level_at(plan, root, path[:-1])
    assert parent is not None
    attempt = parent.state.steps[path[-1]].attempt
    return m.Opened(record.at, path, attempt, parent.state.generation, record.inputs)


def _result(record: r.Succeeded | r.Failed | r.Halted | r.Cut) -> m.Result:
    match record:
        case r.Succeeded(_, _, value, skipped):
            return m.Success(value, skipped)
        case r.Failed(_, _, error, started, retry_at):
            return m.Failure(error, retry_at is not None, 0.5, started)
        case r.Halted(_, _, reason):
            return m.Halting(reason)
        case r.Cut():
            return m.Interrupted()


def _failure(record: r.HandlerSettled | r.HandlerFailed) -> m.Failure | None:
    if isinstance(record, r.HandlerFailed):
        return m.Failure(error_of(record.step), retryable=True)
    return None if record.error is None else m.Failure(record.error)
