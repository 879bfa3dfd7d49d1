"""The state of a run: what its records add up to, see `changes.py`."""

from enum import Enum
from typing import Any, Literal

from msgspec import Struct, structs

from rewound.runtime.engine import records as r
from rewound.runtime.outcomes import RollbackFailure, StepError

__all__ = ["TERMINAL", "Entry", "Phase", "RunState", "Status", "StepState"]

Status = Literal[
    "queued", "running", "paused", "rolling_back", "completed", "failed", "halted", "cancelled", "stuck"
]
Entry = tuple[r.HandlerKind, str]
"""One handler of the rollback: its kind and its step."""

TERMINAL: frozenset[str] = frozenset({"completed", "failed", "halted", "cancelled"})


class Phase(Enum):
    """Where one step is."""

    WAITING = "waiting"  # for its needs, or for a slot
    STARTED = "started"
    RETRYING = "retrying"  # its last attempt failed, the next is due at `retry_at`
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    FAILED = "failed"
    CUT = "cut"
    HALTED = "halted"


COMPLETE = (Phase.SUCCEEDED, Phase.SKIPPED)


class StepState(Struct):
    """One step of a run.

    `missing` counts the needs that have not completed. `began`: some attempt's body has begun, leaving
    aside the one in flight, which may turn out not to have (rule S2).
    """

    missing: int
    phase: Phase = Phase.WAITING
    attempt: int = 0
    began: bool = False
    value: bytes | None = None
    error: StepError | None = None
    retry_at: float | None = None


class RunState(Struct):
    """One run.

    Args:
        steps: every step of the plan.
        ready: steps that may begin as soon as there is a slot, in the order they became ready.
        in_flight: steps whose body is listed as started and has not settled.
        open_steps: how many steps have not completed.
        completions: steps in the order in which they completed.
        failures: steps that failed or were cut off, in the order of their records.
        stop: why no new step starts; `None` while the run moves forward.
        cut: bodies in flight are to be cut off (not left to settle).
        overdue: the run's timeout has passed; `expired` is set if that is what failed it.
        cause: why the rollback of this generation began first.
        rollbacks: how many rollbacks have opened, in all generations.
        queue: handlers still to run, next first; `None` before the rollback opened.
        rolled: handlers that settled, each with its failure or `None`.
        handler_attempt: attempts made so far by the first handler of the queue.
        recoveries: takeovers in a row with a body in flight and nothing settled in between.
        stuck: why the run is parked; `parked_in` is the status it had.
        maps_left: maps with elements that have rollback failures, and how many.
        counts: of maps that say so, how many elements have begun, and how many have completed.
        children: the states of composed children, by step; each is like a run of its own.
    """

    inputs: bytes = b""
    version: int = 0
    shape: Any = None
    status: Status = "running"
    generation: int = 0
    began_at: float = 0.0
    steps: dict[str, StepState] = {}
    ready: list[str] = []
    in_flight: set[str] = set()
    retrying: set[str] = set()
    open_steps: int = 0
    completions: list[str] = []
    failures: list[str] = []
    halt: tuple[str, str] | None = None
    stop: Literal["failure", "halt", "undo", "cancel"] | None = None
    cut: bool = False
    reason: str = ""
    overdue: bool = False
    expired: StepError | None = None
    cause: Literal["failure", "undo"] | None = None
    rollbacks: int = 0
    queue: list[Entry] | None = None
    rolled: dict[Entry, RollbackFailure | None] = {}
    handler_attempt: int = 0
    handler_retry_at: float | None = None
    recoveries: int = 0
    stuck: str | None = None
    parked_in: Status = "running"
    maps_left: dict[str, int] = {}
    counts: dict[str, tuple[int, int]] = {}
    children: dict[str, "RunState"] = {}

    @property
    def terminal(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL

    @property
    def left(self) -> int:
        """How many elements of maps have rollback failures, at every level."""
        if not self.maps_left and not self.children:
            return 0  # of an element, this is asked again and again
        return sum(self.maps_left.values()) + sum(child.left for child in self.children.values())

    @property
    def rollback_failures(self) -> list[RollbackFailure]:
        """The undos and compensates that failed, those of composed children first (rule C4)."""
        if not self.rolled and not self.children:
            return []
        inner = [
            structs.replace(failure, step=f"{name}/{failure.step}")
            for name, child in self.children.items()
            for failure in child.rollback_failures
        ]
        return inner + [failure for failure in self.rolled.values() if failure is not None]
