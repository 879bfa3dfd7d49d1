"""The levels of a run: the reactor itself, and the composed children below it (rule C1).

Each level is the same state machine. A path is the names of the steps that lead to a level.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rewound.runtime.declare import Plan
from rewound.runtime.engine import records as r
from rewound.runtime.engine.changes import child_of
from rewound.runtime.engine.decide import is_body, startable
from rewound.runtime.engine.state import RunState

__all__ = ["Level", "Path", "Place", "is_working", "level_at", "live_levels", "places_of", "started_in"]

Path = tuple[str, ...]

Place = tuple[Path, str]
"""A step of a level."""


class Level(NamedTuple):
    """One level: the way to it, its plan and its state."""

    path: Path
    plan: Plan
    state: RunState


def level_at(plan: Plan, state: RunState, path: Path) -> Level | None:
    """Find a level; `None` if that child has not been opened."""
    level = Level((), plan, state)
    for name in path:
        child = level.state.children.get(name)
        if child is None:
            return None
        level = Level((*level.path, name), child_of(level.plan, name), child)
    return level


def live_levels(plan: Plan, state: RunState, path: Path = ()) -> list[Level]:
    """List the levels that have not ended, from the root down."""
    if state.terminal:
        return []
    levels = [Level(path, plan, state)]
    for name, child in state.children.items():
        levels += live_levels(child_of(plan, name), child, (*path, name))
    return levels


def places_of(plan: Plan, state: RunState) -> set[Place]:
    """Return where bodies are in flight."""
    return {
        (level.path, name)
        for level in live_levels(plan, state)
        for name in level.state.in_flight
        if is_body(level.plan, name)
    }


def started_in(plan: Plan, records: Iterable[r.Record]) -> set[Place]:
    """Return where records begin bodies."""
    places: set[Place] = set()
    for record in records:
        path, own = (record.path, record.record) if isinstance(record, r.Within) else ((), record)
        if isinstance(own, r.Started) and is_body(plan_at(plan, path), own.step):
            places.add((path, own.step))
    return places


def plan_at(plan: Plan, path: Path) -> Plan:
    """Return the plan of a level, opened or not."""
    for name in path:
        plan = child_of(plan, name)
    return plan


def is_working(plan: Plan, state: RunState) -> bool:
    """Whether anything is in flight, or could begin, so that the run does not only wait for an alarm."""
    return any(
        level.state.in_flight - level.state.children.keys() or startable(level.state)
        for level in live_levels(plan, state)
    )
