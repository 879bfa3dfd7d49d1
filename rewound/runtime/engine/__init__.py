"""The engine: records add up to a state, a message leads to records, a state has effects.

Pure: no I/O, no clock, no tasks, no random numbers.
"""

from rewound.runtime.engine.advance import advance, next_alarm, start, wanted
from rewound.runtime.engine.changes import fold
from rewound.runtime.engine.decide import doomed, handler_of
from rewound.runtime.engine.follow import (
    CutBody,
    Effect,
    Open,
    RollBackMap,
    RunBody,
    RunHandler,
    RunMap,
    StopMap,
    follow,
)
from rewound.runtime.engine.levels import Level, Path, Place, is_working, level_at, places_of, started_in
from rewound.runtime.engine.outcome import first_failure, outcome_of
from rewound.runtime.engine.state import RunState
from rewound.runtime.engine.verbs import refusal

__all__ = [
    "CutBody",
    "Effect",
    "Level",
    "Open",
    "Path",
    "Place",
    "RollBackMap",
    "RunBody",
    "RunHandler",
    "RunMap",
    "RunState",
    "StopMap",
    "advance",
    "doomed",
    "first_failure",
    "fold",
    "follow",
    "handler_of",
    "is_working",
    "level_at",
    "next_alarm",
    "outcome_of",
    "places_of",
    "refusal",
    "start",
    "started_in",
    "wanted",
]
