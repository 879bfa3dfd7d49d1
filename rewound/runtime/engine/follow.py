"""What an owner must do about new records. Effects are values; the owner carries them out.

Only stored records have effects: record, then act.
"""

from collections.abc import Iterable

from msgspec import Struct

from rewound.runtime.declare import Plan
from rewound.runtime.engine import records as r
from rewound.runtime.engine.decide import doomed
from rewound.runtime.engine.state import Entry, RunState

__all__ = ["CutBody", "Effect", "Finish", "RunBody", "RunHandler", "follow", "resume"]


class RunBody(Struct, frozen=True):
    """Run a step's body. `granted`: a slot was taken for it already."""

    step: str
    attempt: int
    granted: bool = True


class RunHandler(Struct, frozen=True):
    """Run an undo or a compensate."""

    step: str
    kind: r.HandlerKind
    attempt: int


class CutBody(Struct, frozen=True):
    """Cut a body off; it reports when it has ended."""

    step: str


class Finish(Struct, frozen=True):
    """The run has ended, or is stuck: tell the waiters."""


Effect = RunBody | RunHandler | CutBody | Finish


def follow(plan: Plan, state: RunState, records: Iterable[r.Record]) -> list[Effect]:
    """Return the effects of `records`, which led to `state`."""
    effects: list[Effect] = []
    handlers = stops = False
    for record in records:
        match record:
            case r.Started(_, step, attempt):
                effects.append(RunBody(step, attempt))
            case r.Failed() | r.Asked() | r.Expired():
                stops = True
            case r.RollbackOpened() | r.HandlerSettled():
                handlers = True
            case r.Ended() | r.Parked():
                effects.append(Finish())
            case r.Resumed():
                effects += resume(plan, state, 0.0)
            case _:
                pass
    if stops:
        effects += [CutBody(step) for step in sorted(doomed(plan, state))]
    return effects + (_next_handler(state) if handlers else [])


def resume(plan: Plan, state: RunState, at: float) -> list[Effect]:
    """Return what an owner that starts on a stored run must do for what was in flight."""
    if state.terminal or state.status == "stuck":
        return []
    bodies: list[Effect] = [
        RunBody(name, state.steps[name].attempt, granted=False)
        for name in plan.steps
        if name in state.in_flight
    ]
    return bodies + handler_due(state, at)


def handler_due(state: RunState, at: float) -> list[Effect]:
    """Return the handler whose retry is due, or that was cut off by a crash."""
    waits = state.handler_retry_at is not None and state.handler_retry_at > at
    return [] if waits else _next_handler(state)


def _next_handler(state: RunState) -> list[Effect]:
    if not state.queue or state.status != "rolling_back":
        return []
    entry: Entry = state.queue[0]
    return [RunHandler(entry[1], entry[0], state.handler_attempt + 1)]
