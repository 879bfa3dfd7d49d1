"""The levels of a run: the reactor itself, and the composed children below it (rule C1).

Each level is the same state machine. A path is the names of the steps that lead to a level.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rewound.runtime.declare import Plan
from rewound.runtime.engine.changes import child_of
from rewound.runtime.engine.state import RunState

__all__ = ["Level", "Path", "level_at", "live_levels"]

Path = tuple[str, ...]


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


def live_levels(plan: Plan, state: RunState, path: Path = ()) -> Iterator[Level]:
    """Walk over the levels that have not ended, from the root down."""
    if state.terminal:
        return
    yield Level(path, plan, state)
    for name, child in state.children.items():
        yield from live_levels(child_of(plan, name), child, (*path, name))
