"""A map, forward and back: what its owner keeps, and the rules about which element comes next.

An element is a run of its own in small: it has a `RunState`, its records lie in one cell. What the
elements add up to is the map's `MapHead`, stored with every write of cells. The head does not grow with
the number of elements: what has begun is one watermark, never a list (M3), so is what is taken back (R3).

Forward, elements begin in index order, at most `batch_size` in flight (M1). With `atomic`, the first that
fails stops the map; those in flight settle, no other begins (M5). Without, the map completes whatever its
elements do. A failing element has rolled itself back when it settles (M6); one that halts ends only itself.

Back, every element that began comes up, newest first, at most `batch_size` in flight (R1, R3), and ends in
exactly one outcome (R4).
"""

from collections.abc import Collection, Iterable
from enum import IntEnum
from typing import Literal

import msgspec
from msgspec import Struct

from rewound.runtime.engine import messages as m
from rewound.runtime.engine.records import Record, decode_records
from rewound.runtime.engine.state import RunState
from rewound.runtime.outcomes import StepError

__all__ = [
    "Cell",
    "MapHead",
    "Outcome",
    "back_done",
    "decode_cell",
    "decode_head",
    "encode_cell",
    "encode_head",
    "forward_result",
    "next_back",
    "next_forward",
    "open_rollback",
    "outcome_back",
    "settle_back",
    "settle_forward",
    "stop",
]


class Outcome(IntEnum):
    """How an element ended in the map's rollback (R4)."""

    NONE = 0
    UNDONE = 1
    FAILED = 2
    NOT_NEEDED = 3
    UNAVAILABLE = 4


class MapHead(Struct, array_like=True):
    """What a map's elements add up to.

    Args:
        total: how many elements there are, once the source has ended.
        started: every element below this index has begun.
        low: every element below this index has settled.
        settled: elements that have settled.
        failed: elements that failed.
        stop: why no further element begins.
        cut: elements in flight are cut off.
        error: the failure that stopped an atomic map.
        rollback: which rollback of its level the map takes part in; 0 before the first.
        next: in this rollback, every element from this index on has come up.
        high: in this rollback, every element from this index on has its outcome.
        undone: elements taken back in this rollback.
        left: elements whose rollback failed, or whose record is gone.
        recoveries: takeovers in a row with an element in flight and nothing settled in between.
        seen: what had settled, forward and back, at the last takeover.
    """

    total: int | None = None
    started: int = 0
    low: int = 0
    settled: int = 0
    failed: int = 0
    stop: Literal["", "failure", "undo", "cancel"] = ""
    cut: bool = False
    error: StepError | None = None
    rollback: int = 0
    next: int = 0
    high: int = 0
    undone: int = 0
    left: int = 0
    recoveries: int = 0
    seen: int = -1


class Cell(Struct, array_like=True):
    """One element: its records, and its outcome in the newest rollback it came up in."""

    records: list[msgspec.Raw]
    rollback: int = 0
    outcome: int = 0


_heads = msgspec.msgpack.Decoder(MapHead)
_cells = msgspec.msgpack.Decoder(Cell)
_encode = msgspec.msgpack.Encoder().encode


def encode_head(head: MapHead) -> bytes:
    """Encode a map's head for storage."""
    return _encode(head)


def decode_head(raw: bytes) -> MapHead:
    """Decode a map's head."""
    return _heads.decode(raw)


def encode_cell(records: Iterable[bytes], rollback: int = 0, outcome: Outcome = Outcome.NONE) -> bytes:
    """Encode an element: records that are encoded already, and its outcome."""
    return _encode(Cell([msgspec.Raw(record) for record in records], rollback, int(outcome)))


def decode_cell(raw: bytes) -> tuple[list[Record], list[bytes], Cell]:
    """Decode an element: its records, the same encoded, and the cell."""
    cell = _cells.decode(raw)
    encoded = [bytes(record) for record in cell.records]
    return decode_records(encoded), encoded, cell


# -- forward


def next_forward(head: MapHead, flying: Collection[int], batch: int, available: int) -> int | None:
    """Begin the next element, if one may begin; `available` rows are stored. Moves the watermark."""
    if head.stop or head.rollback or len(flying) >= batch or head.started >= available:
        return None
    head.started += 1
    return head.started - 1


def settle_forward(
    head: MapHead, flying: Collection[int], state: RunState, error: StepError | None, *, atomic: bool
) -> None:
    """Count an element that has settled; it is not among `flying` any more."""
    head.settled += 1
    head.low = min(flying, default=head.started)
    if state.status == "failed":
        head.failed += 1
        if atomic and not head.stop:
            head.stop, head.error = "failure", error


def stop(head: MapHead, verb: Literal["undo", "cancel", "failure"], *, cut: bool) -> None:
    """Stop a map because its level stops."""
    if verb == "cancel" or not head.stop:
        head.stop = verb
    head.cut = head.cut or cut


def forward_result(head: MapHead, flying: Collection[int]) -> m.Result | None:
    """Say how the map settles its step, once it does."""
    if flying:
        return None
    if head.stop == "failure" and head.error is not None:
        return m.Failure(head.error)
    if head.stop:
        return m.Interrupted()
    ended = head.total is not None and head.started >= head.total
    return m.Success(_encode(head.total)) if ended else None


# -- back


def open_rollback(head: MapHead, rollback: int) -> None:
    """Fix the work list: every element that began (R3). Opens once per rollback (R2)."""
    if head.rollback < rollback:
        head.rollback, head.next, head.high = rollback, head.started, head.started
        head.undone = head.left = 0


def next_back(head: MapHead, flying: Collection[int], batch: int) -> int | None:
    """Have the next element come up, newest first. Moves the watermark."""
    if head.next == 0 or len(flying) >= batch:
        return None
    head.next -= 1
    return head.next


def settle_back(head: MapHead, flying: Collection[int], outcome: Outcome) -> None:
    """Count an element's outcome; it is not among `flying` any more."""
    head.undone += outcome is Outcome.UNDONE
    head.left += outcome in (Outcome.FAILED, Outcome.UNAVAILABLE)
    head.high = max(flying, default=head.next - 1) + 1


def outcome_back(state: RunState, *, had_work: bool) -> Outcome:
    """Name the outcome of an element that has been taken back, or had nothing to be taken back."""
    if had_work and (state.rollback_failures or state.left):
        return Outcome.FAILED
    return Outcome.UNDONE if had_work else Outcome.NOT_NEEDED


def back_done(head: MapHead, flying: Collection[int]) -> bool:
    """Whether every element of the work list has its outcome (R7, R9)."""
    return head.rollback > 0 and head.next == 0 and not flying
