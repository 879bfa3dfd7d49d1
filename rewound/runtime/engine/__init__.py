"""The engine: records add up to a state, a message leads to records, a state has effects.

Pure: no I/O, no clock, no tasks, no random numbers.
"""

from rewound.runtime.engine.changes import fold
from rewound.runtime.engine.decide import advance, next_alarm, start, startable
from rewound.runtime.engine.follow import CutBody, Effect, RunBody, RunHandler, follow
from rewound.runtime.engine.outcome import first_failure, outcome_of
from rewound.runtime.engine.state import RunState
from rewound.runtime.engine.verbs import refusal

__all__ = [
    "CutBody",
    "Effect",
    "RunBody",
    "RunHandler",
    "RunState",
    "advance",
    "first_failure",
    "fold",
    "follow",
    "next_alarm",
    "outcome_of",
    "refusal",
    "start",
    "startable",
]
