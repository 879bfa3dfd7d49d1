"""What an owner must do, given a stored state and what it is doing already.

Effects are the difference between the two, so an owner that starts on a stored run, one that has just
committed and one that woke up use the same function, and no effect can be lost between them (O5). Only
stored records have effects: record, then act.
"""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from rewound.runtime.declare import Plan
from rewound.runtime.engine.decide import doomed, is_body
from rewound.runtime.engine.levels import Level, Path, Place, live_levels
from rewound.runtime.engine.records import HandlerKind
from rewound.runtime.engine.state import RunState

__all__ = ["CutBody", "Effect", "Open", "RollBackMap", "RunBody", "RunHandler", "RunMap", "StopMap", "follow"]


class RunBody(Struct, frozen=True):
    """Run a step's body."""

    path: Path
    step: str
    attempt: int


class Open(Struct, frozen=True):
    """Make the inputs of a composed child of its parent's results, and open it."""

    path: Path
    step: str
    attempt: int


class RunMap(Struct, frozen=True):
    """Run a map's elements. It adopts what is recorded of them (M3)."""

    path: Path
    step: str
    attempt: int


class StopMap(Struct, frozen=True):
    """Begin no further element; with `cut`, cut off those in flight."""

    path: Path
    step: str
    verb: Literal["failure", "undo", "cancel"]
    cut: bool


class RollBackMap(Struct, frozen=True):
    """Take a map's elements back. `rollback`: which rollback of its level this is, from 1."""

    path: Path
    step: str
    kind: HandlerKind
    rollback: int


class RunHandler(Struct, frozen=True):
    """Run an undo, a compensate or an `undo_all`. `rollback`: which rollback of its level this is, from 1."""

    path: Path
    step: str
    kind: HandlerKind
    attempt: int
    rollback: int


class CutBody(Struct, frozen=True):
    """Cut a body off; it reports when it has ended."""

    path: Path
    step: str


Effect = RunBody | Open | RunMap | StopMap | RollBackMap | RunHandler | CutBody


def follow(
    plan: Plan, state: RunState, at: float, *, bodies: Collection[Place], handlers: Collection[Place]
) -> list[Effect]:
    """Return what to start and what to cut off, to be carried out in this order.

    A body that is to be cut off and does not run here (the run was taken over, and the same batch of
    messages asked for its undo) is started and at once cut: like any other it reports its end.

    Args:
        plan: the run's plan.
        state: its state, all of it stored.
        at: the storage's clock.
        bodies: where a body is running here.
        handlers: where an undo or compensate is running here.
    """
    if state.status == "stuck":
        return []
    effects: list[Effect] = []
    for level in live_levels(plan, state):
        effects += _forward(level, bodies)
        effects += _backward(level, at, handlers)
    return effects


def _forward(level: Level, bodies: Collection[Place]) -> list[Effect]:
    path, plan, state = level
    effects: list[Effect] = []
    for step in plan.steps:
        if step in state.in_flight and (path, step) not in bodies:
            attempt = state.steps[step].attempt
            if is_body(plan, step):
                effects.append(RunBody(path, step, attempt))
            elif plan.steps[step].map is not None:
                effects.append(RunMap(path, step, attempt))
            elif step not in state.children:
                effects.append(Open(path, step, attempt))
    effects += [CutBody(path, step) for step in sorted(doomed(plan, state))]
    return effects + _stops(level)


def _stops(level: Level) -> list[Effect]:
    """Tell maps in flight that their level stops; being told twice changes nothing."""
    path, plan, state = level
    if state.stop is None or state.stop == "halt":
        return []
    maps = sorted(name for name in state.in_flight if plan.steps[name].map is not None)
    return [StopMap(path, name, state.stop, state.cut) for name in maps]


def _backward(level: Level, at: float, handlers: Collection[Place]) -> list[Effect]:
    path, plan, state = level
    if not state.queue or state.status != "rolling_back" or (state.handler_retry_at or 0.0) > at:
        return []
    kind, step = state.queue[0]
    if (path, step) in handlers or step in state.children:
        return []
    if plan.steps[step].map is not None and kind != "undo_all":
        return [RollBackMap(path, step, kind, state.rollbacks)]
    return [RunHandler(path, step, kind, state.handler_attempt + 1, state.rollbacks)]
