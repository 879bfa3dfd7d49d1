"""What a user sees of each record."""

import pytest

from rewound import RunEvent, StepError
from rewound.runtime.engine import records as r
from rewound.runtime.events import event_of

ERROR = StepError("Declined", "no money", "charge", 2)
WHY = {"error": "Declined", "message": "no money"}


@pytest.mark.parametrize(
    ("record", "event"),
    [
        (
            r.Spawned(1.0, b"", "Shop", 3, ()),
            RunEvent(1.0, "run.spawned", None, {"reactor": "Shop", "version": 3}),
        ),
        (r.Started(1.0, "charge", 2), RunEvent(1.0, "step.started", "charge", {"attempt": 2})),
        (r.Succeeded(1.0, "charge", b""), RunEvent(1.0, "step.succeeded", "charge")),
        (r.Succeeded(1.0, "charge", b"", skipped=True), RunEvent(1.0, "step.skipped", "charge")),
        (
            r.Failed(1.0, "charge", ERROR),
            RunEvent(1.0, "step.failed", "charge", {"attempt": 2, "started": True, **WHY}),
        ),
        (
            r.Failed(1.0, "charge", ERROR, retry_at=5.0),
            RunEvent(1.0, "step.retrying", "charge", {"attempt": 2, "started": True, **WHY}),
        ),
        (r.Halted(1.0, "charge", "enough"), RunEvent(1.0, "step.halted", "charge", {"reason": "enough"})),
        (r.Cut(1.0, "charge"), RunEvent(1.0, "step.cut", "charge")),
        (r.Asked(1.0, "undo", "wrong"), RunEvent(1.0, "run.undo", None, {"reason": "wrong"})),
        (r.Expired(1.0, 60.0), RunEvent(1.0, "run.expired", None, {"timeout": 60.0})),
        (r.RollbackOpened(1.0), RunEvent(1.0, "rollback.opened")),
        (
            r.HandlerFailed(1.0, "charge", "undo", 1, 5.0),
            RunEvent(1.0, "rollback.retrying", "charge", {"kind": "undo", "attempt": 1}),
        ),
        (
            r.HandlerFailed(1.0, "charge", "undo", 1, 5.0, ERROR),
            RunEvent(1.0, "rollback.retrying", "charge", {"kind": "undo", "attempt": 1, **WHY}),
        ),
        (
            r.HandlerSettled(1.0, "charge", "undo"),
            RunEvent(1.0, "rollback.settled", "charge", {"kind": "undo"}),
        ),
        (
            r.HandlerSettled(1.0, "charge", "undo", ERROR),
            RunEvent(1.0, "rollback.failed", "charge", {"kind": "undo", **WHY}),
        ),
        (r.Ended(1.0, "failed"), RunEvent(1.0, "run.ended", None, {"status": "failed"})),
        (r.Recovered(1.0), RunEvent(1.0, "run.recovered")),
        (r.Parked(1.0, "broken"), RunEvent(1.0, "run.stuck", None, {"reason": "broken"})),
        (r.Resumed(1.0), RunEvent(1.0, "run.resumed")),
        (r.Retried(1.0), RunEvent(1.0, "run.retried")),
    ],
)
def test_event_of(record: r.Record, event: RunEvent) -> None:
    """Each record is one event with a name, the step it is about, and plain details."""
    assert event_of(record) == event
