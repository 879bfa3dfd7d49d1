"""What can happen to a run. Every message carries `at`, the storage's clock when it was made.

Messages are values: whoever makes one has already read clocks, drawn random numbers and looked at
exception classes, so that `decide` needs none of that.
"""

from typing import Literal

from msgspec import Struct

from rewound.runtime.engine.records import HandlerKind
from rewound.runtime.outcomes import StepError

__all__ = [
    "Adopted",
    "Failure",
    "Halting",
    "HandlerDone",
    "Interrupted",
    "MapCount",
    "Message",
    "Opened",
    "Refused",
    "Result",
    "Settled",
    "Stop",
    "Success",
    "Tick",
    "Verb",
    "VerbName",
]

VerbName = Literal["undo", "cancel", "retry"]


class Success(Struct, frozen=True, gc=False):
    """A body returned; `value` is its result's msgpack."""

    value: bytes
    skipped: bool = False


class Failure(Struct, frozen=True):
    """A body raised.

    Args:
        error: what it raised, as data.
        retryable: whether the step's `Retry` applies to that exception.
        random: in [0, 1), for the jitter of the delay.
        started: false if the body never began: an input could not be resolved (rule S2).
    """

    error: StepError
    retryable: bool = False
    random: float = 0.5
    started: bool = True


class Halting(Struct, frozen=True):
    """A body raised `Halt`."""

    reason: str


class Interrupted(Struct, frozen=True):
    """A body was cut off because the run was to stop, and has ended."""


Result = Success | Failure | Halting | Interrupted


class MapCount(Struct, frozen=True):
    """What a map's elements add up to; `left`: those with rollback failures of their own."""

    started: int
    completed: int
    left: int


class Settled(Struct, frozen=True):
    """An attempt of a step's body ended.

    `path` leads to the composed child whose step it is; `count` is given by a map whose result leaves
    anything to be said.
    """

    at: float
    step: str
    attempt: int
    generation: int
    result: Result
    path: tuple[str, ...] = ()
    count: MapCount | None = None


class HandlerDone(Struct, frozen=True):
    """An attempt of an undo or a compensate ended.

    Args:
        at: when.
        step: whose handler.
        kind: which one.
        attempt: which attempt, from 1.
        failure: `None` if it returned.
        rollback: the rollback it was started in (`RunHandler.rollback`), so that a message that comes
            late cannot settle a later undo of the same step.
        path: leads to the composed child whose step it is.
        left: of a map, how many elements have rollback failures.
    """

    at: float
    step: str
    kind: HandlerKind
    attempt: int
    failure: Failure | None
    rollback: int
    path: tuple[str, ...] = ()
    left: int = 0


class Opened(Struct, frozen=True):
    """A composed child can begin: its inputs, as msgpack, were made of its parent's results (rule C1)."""

    at: float
    path: tuple[str, ...]
    attempt: int
    generation: int
    inputs: bytes


class Tick(Struct, frozen=True):
    """Time has passed."""

    at: float


class Verb(Struct, frozen=True):
    """Somebody asks for an undo, a cancel or a retry."""

    at: float
    verb: VerbName
    reason: str = ""


class Stop(Struct, frozen=True):
    """A level is to stop: an accepted verb, or what a stopping parent passes on to a composed child.

    Args:
        at: when.
        verb: whether it is to be taken back, or left as it is.
        reason: whose wish it is.
        cut: cut off what is in flight, rather than let it settle.
        idle: nothing is running, because the run was stuck.
    """

    at: float
    verb: Literal["undo", "cancel"]
    reason: str = ""
    cut: bool = True
    idle: bool = False


class Adopted(Struct, frozen=True):
    """An owner was started on a stored run. `crashed`: the previous one did not release it."""

    at: float
    crashed: bool
    max_recoveries: int


class Refused(Struct, frozen=True):
    """This run cannot go on here and nobody else can take it: it is parked with the reason."""

    at: float
    reason: str


Message = Settled | HandlerDone | Opened | Stop | Tick | Verb | Adopted | Refused
