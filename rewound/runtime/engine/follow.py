"""What an owner must do, given a stored state and what it is doing already.

Effects are the difference between the two, so an owner that starts on a stored run, one that has just
committed and one that woke up use the same function, and no effect can be lost between them (O5). Only
stored records have effects: record, then act.
"""

from collections.abc import Collection

from msgspec import Struct

from rewound.runtime.declare import Plan
from rewound.runtime.engine.decide import doomed
from rewound.runtime.engine.records import HandlerKind
from rewound.runtime.engine.state import Entry, RunState

__all__ = ["CutBody", "Effect", "RunBody", "RunHandler", "follow"]


class RunBody(Struct, frozen=True):
    """Run a step's body."""

    step: str
    attempt: int


class RunHandler(Struct, frozen=True):
    """Run an undo or a compensate. `rollback`: which rollback of the run this is, from 1."""

    step: str
    kind: HandlerKind
    attempt: int
    rollback: int


class CutBody(Struct, frozen=True):
    """Cut a body off; it reports when it has ended."""

    step: str


Effect = RunBody | RunHandler | CutBody


def follow(
    plan: Plan, state: RunState, at: float, *, bodies: Collection[str], handler: Entry | None
) -> list[Effect]:
    """Return what to start and what to cut off, to be carried out in this order.

    A body that is to be cut off and does not run here (the run was taken over, and the same batch of
    messages asked for its undo) is started and at once cut: like any other it reports its end.

    Args:
        plan: the run's plan.
        state: its state, all of it stored.
        at: the storage's clock.
        bodies: steps whose body is running here.
        handler: the undo or compensate that is running here.
    """
    if state.terminal or state.status == "stuck":
        return []
    missing = state.in_flight.difference(bodies)
    effects: list[Effect] = [
        RunBody(step, state.steps[step].attempt) for step in plan.steps if step in missing
    ]
    effects += [CutBody(step) for step in sorted(doomed(plan, state))]
    if state.queue and handler is None and (state.handler_retry_at or 0.0) <= at:
        kind, step = state.queue[0]
        effects.append(RunHandler(step, kind, state.handler_attempt + 1, state.rollbacks))
    return effects
