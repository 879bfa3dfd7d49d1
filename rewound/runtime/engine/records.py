"""The facts of a run, in the form the journal keeps them.

Tagged, array-encoded msgpack. A record grows only by trailing fields with defaults; a tag is never
given a second meaning; an unknown tag is refused (`UnknownRecord`), so that an old node hands the run
to a newer one instead of misreading it.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from rewound.errors import RewoundError
from rewound.runtime.outcomes import StepError

__all__ = [
    "FORMAT",
    "Asked",
    "Counted",
    "Cut",
    "Ended",
    "Expired",
    "Failed",
    "Halted",
    "HandlerFailed",
    "HandlerKind",
    "HandlerSettled",
    "Parked",
    "Record",
    "Recovered",
    "Resumed",
    "Retried",
    "RollbackOpened",
    "Spawned",
    "Started",
    "Succeeded",
    "UnknownRecord",
    "Within",
    "decode_records",
    "encode_record",
]

FORMAT = 1
"""The version of this record format; a run's head names the one it was written in."""

HandlerKind = Literal["undo", "compensate", "undo_all"]


class UnknownRecord(RewoundError):  # noqa: N818 - named by what was met
    """The journal holds a record that this version cannot read."""


class Record(Struct, frozen=True, array_like=True):
    """One fact. `at` is when it was recorded: unix seconds on the storage's clock."""

    at: float


class Spawned(Record, tag=1, frozen=True, array_like=True):
    """The run exists. `inputs` is its msgpack; `shape` the plan's, for comparison after a deploy."""

    inputs: bytes
    reactor: str
    version: int
    shape: Any
    queued: bool = False


class Started(Record, tag=2, frozen=True, array_like=True):
    """A step's body begins (attempts count from 1). Listed and not settled after a crash means started."""

    step: str
    attempt: int


class Succeeded(Record, tag=3, frozen=True, array_like=True):
    """A step returned; `value` is its result's msgpack. `skipped`: rule S7."""

    step: str
    value: bytes
    skipped: bool = False


class Failed(Record, tag=4, frozen=True, array_like=True):
    """An attempt failed. `retry_at` is when the next may begin; `None`: this failure is final.

    `started` is false if the body never began (rule S2).
    """

    step: str
    error: StepError
    started: bool = True
    retry_at: float | None = None


class Halted(Record, tag=5, frozen=True, array_like=True):
    """A step raised `Halt` (rule S6)."""

    step: str
    reason: str


class Cut(Record, tag=6, frozen=True, array_like=True):
    """A body was cut off before it settled: by an undo, a cancel, a failing sibling, the run's timeout."""

    step: str


class Asked(Record, tag=7, frozen=True, array_like=True):
    """An undo or a cancel was accepted (rule V1).

    `cut` is false where a composed child is told to stop because a sibling failed: what it has in flight
    may settle.
    """

    verb: Literal["undo", "cancel"]
    reason: str
    cut: bool = True


class Expired(Record, tag=8, frozen=True, array_like=True):
    """The run's own timeout passed (rule S12)."""

    timeout: float


class RollbackOpened(Record, tag=9, frozen=True, array_like=True):
    """Nothing is in flight any more; compensates and undos begin."""


class HandlerFailed(Record, tag=10, frozen=True, array_like=True):
    """An attempt of an undo or a compensate failed and another one follows; `error` says why."""

    step: str
    kind: HandlerKind
    attempt: int
    retry_at: float
    error: StepError | None = None


class HandlerSettled(Record, tag=11, frozen=True, array_like=True):
    """An undo or a compensate returned (`error` is `None`), or failed for good (rule S5).

    `left`: of a map, how many elements have rollback failures; they are kept beside the journal (R8).
    """

    step: str
    kind: HandlerKind
    error: StepError | None = None
    left: int = 0


class Ended(Record, tag=12, frozen=True, array_like=True):
    """The run is terminal."""

    status: Literal["completed", "failed", "halted", "cancelled"]


class Recovered(Record, tag=13, frozen=True, array_like=True):
    """The run was taken over from a dead node while a body was in flight."""


class Parked(Record, tag=14, frozen=True, array_like=True):
    """The run is stuck until a person acts."""

    reason: str


class Resumed(Record, tag=15, frozen=True, array_like=True):
    """A stuck run goes on where it was interrupted."""


class Retried(Record, tag=16, frozen=True, array_like=True):
    """A rolled-back run starts again: a new generation, every step anew (rule V2)."""


class Counted(Record, tag=18, frozen=True, array_like=True):
    """What the elements of a map that has settled add up to, where its result does not say that.

    `left`: elements that failed and whose own rollback failed too; they are told of beside the journal (R8).
    """

    step: str
    started: int
    completed: int
    left: int


_OwnRecord = (
    Spawned
    | Started
    | Succeeded
    | Failed
    | Halted
    | Cut
    | Asked
    | Expired
    | RollbackOpened
    | HandlerFailed
    | HandlerSettled
    | Ended
    | Recovered
    | Parked
    | Resumed
    | Retried
    | Counted
)


class Within(Record, tag=17, frozen=True, array_like=True):
    """A fact of a composed child: `path` names the steps that lead to it from the root (rule C1)."""

    path: tuple[str, ...]
    record: _OwnRecord


_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(_OwnRecord | Within)

encode_record = msgspec.msgpack.Encoder().encode
"""Encode one record for the journal."""


def decode_records(stored: Iterable[bytes]) -> list[Record]:
    """Decode a journal; raises `UnknownRecord` naming the position of a record it cannot read."""
    records: list[Record] = []
    for position, raw in enumerate(stored):
        try:
            records.append(_decoder.decode(raw))
        except msgspec.MsgspecError as error:
            raise UnknownRecord(
                f"record {position} of the journal cannot be read by this version "
                f"(record format {FORMAT}): {error}; run it on a node with the newer version"
            ) from error
    return records
