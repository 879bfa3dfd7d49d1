"""Durable sagas as actors: work inside an async service that finishes or is taken back.

The layers, from the top:

    testing, web, cli, telemetry      surfaces: they use this facade and nothing below it
    rewound                           this facade
    runtime                           sagas: declare (what users write), engine (rules), owners (actors), node
    actors, storage                   a task and its mailbox; journals, claims, leases, mail
    errors                            one tree, used by all

`rewound.actors` is usable on its own and exports its own names.
"""

from rewound.errors import (
    ActorError,
    ActorStopped,
    AlreadyResumed,
    AmbiguousKey,
    AskCycle,
    AskTimeout,
    ClaimLost,
    DefinitionError,
    EncodeError,
    Fatal,
    Halt,
    InputError,
    JournalMismatch,
    PayloadError,
    PayloadTooLarge,
    RewoundError,
    RollbackIncomplete,
    RollbackInProgress,
    RunCancelled,
    RunError,
    RunFailed,
    RunHalted,
    RunNotFound,
    RunStuck,
    RuntimeClosed,
    SourceLost,
    StorageConfigError,
    StorageError,
    VerbError,
    WrongStatus,
)
from rewound.runtime.context import Context
from rewound.runtime.declare import (
    Reactor,
    Redact,
    Retry,
    Skipped,
    Step,
    check_module,
    compose,
    element,
    fan_out,
    lint,
    map_each,
    plan_of,
    source,
    step,
    use,
    value,
)
from rewound.runtime.events import RunEvent
from rewound.runtime.logs import JsonFormatter
from rewound.runtime.outcomes import (
    Cancelled,
    Completed,
    ElementOutcome,
    Failed,
    Halted,
    Outcome,
    RollbackFailure,
    StepError,
)
from rewound.runtime.progress import MapProgress, RollbackProgress
from rewound.runtime.results import Page, Results
from rewound.runtime.run import Run
from rewound.runtime.runtime import RunSummary, Runtime

__all__ = [
    "ActorError",
    "ActorStopped",
    "AlreadyResumed",
    "AmbiguousKey",
    "AskCycle",
    "AskTimeout",
    "Cancelled",
    "ClaimLost",
    "Completed",
    "Context",
    "DefinitionError",
    "ElementOutcome",
    "EncodeError",
    "Failed",
    "Fatal",
    "Halt",
    "Halted",
    "InputError",
    "JournalMismatch",
    "JsonFormatter",
    "MapProgress",
    "Outcome",
    "Page",
    "PayloadError",
    "PayloadTooLarge",
    "Reactor",
    "Redact",
    "Results",
    "Retry",
    "RewoundError",
    "RollbackFailure",
    "RollbackInProgress",
    "RollbackIncomplete",
    "RollbackProgress",
    "Run",
    "RunCancelled",
    "RunError",
    "RunEvent",
    "RunFailed",
    "RunHalted",
    "RunNotFound",
    "RunStuck",
    "RunSummary",
    "Runtime",
    "RuntimeClosed",
    "Skipped",
    "SourceLost",
    "Step",
    "StepError",
    "StorageConfigError",
    "StorageError",
    "VerbError",
    "WrongStatus",
    "__version__",
    "check_module",
    "compose",
    "element",
    "fan_out",
    "lint",
    "map_each",
    "plan_of",
    "source",
    "step",
    "use",
    "value",
]

__version__ = "0.1.0"
