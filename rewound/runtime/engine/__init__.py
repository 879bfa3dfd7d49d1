"""The engine: records add up to a state, a message leads to records, records have effects.

Pure: no I/O, no clock, no tasks, no random numbers.
"""

from rewound.runtime.engine.decide import advance, due, next_alarm, start, startable
from rewound.runtime.engine.follow import (
    CutBody,
    Effect,
    Finish,
    RunBody,
    RunHandler,
    follow,
    handler_due,
    resume,
)
from rewound.runtime.engine.outcome import first_failure, outcome_of
from rewound.runtime.engine.state import RunState, fold
from rewound.runtime.engine.verbs import refusal

__all__ = [
    "CutBody",
    "Effect",
    "Finish",
    "RunBody",
    "RunHandler",
    "RunState",
    "advance",
    "due",
    "first_failure",
    "fold",
    "follow",
    "handler_due",
    "next_alarm",
    "outcome_of",
    "refusal",
    "resume",
    "start",
    "startable",
]
