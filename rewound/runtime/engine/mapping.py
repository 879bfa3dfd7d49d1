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

from rewound.runtime.declare import Plan
from rewound.runtime.engine import messages as m
from rewound.runtime.engine.decide import is_body
from rewound.runtime.engine.levels import Path, Place
from rewound.runtime.engine.records import Record, decode_records
from rewound.runtime.engine.state import RunState
from rewound.runtime.outcomes import StepError

__all__ = [
    "Cell",
    "MapHead",
    "Outcome",
    "back_done",
    "break_off",
    "count_of",
    "decode_cell",
    "decode_head",
    "encode_cell",
    "encode_head",
    "forward_result",
    "next_back",
    "next_forward",
    "open_rollback",
    "recovered",
    "settle_back",
    "settle_forward",
    "stop",
    "unrecorded",
]


class Outcome(IntEnum):
    """How an element ended in the map's rollback (R4). `NONE`: it came up for `undo_all` to take back."""

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
        completed: elements that have completed.
        failed: elements that failed.
        stop: why no further element begins; `halt` is a source's.
        cut: elements in flight are cut off.
        error: the failure that stopped the map: an element's if it is atomic, or its source's.
        left: elements with rollback failures: in this rollback, before it in what failed by itself.
        rollback: which rollback of its level the map takes part in; 0 before the first.
        again: it took part in an earlier one, whose failures this one repeats.
        next: in this rollback, every element from this index on has come up.
        high: in this rollback, every element from this index on has its outcome.
        rolled: elements that have their outcome in this rollback.
        moves: grows with what elements achieve, step by step, forward and back.
        seen: `moves` at the last takeover.
        recoveries: takeovers in a row with a body in flight and no move in between.
    """

    total: int | None = None
    started: int = 0
    low: int = 0
    settled: int = 0
    completed: int = 0
    failed: int = 0
    stop: Literal["", "failure", "halt", "undo", "cancel"] = ""
    cut: bool = False
    error: StepError | None = None
    left: int = 0
    rollback: int = 0
    again: bool = False
    next: int = 0
    high: int = 0
    rolled: int = 0
    moves: int = 0
    seen: int = -1
    recoveries: int = 0


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


def unrecorded(plan: Plan, path: Path = (), *, alone: bool = True) -> frozenset[Place]:
    """Name the steps of an element whose beginning need not be recorded: most have one write, their end.

    The map's watermark says that the element has begun. A body that was in flight at a crash and is not
    known to have begun simply runs again, unless the element was stopped by then. So it must be known
    of a body with a compensate (S2), of a child or map, which hears of the stop; and of a body with an
    undo if another step may fail beside it, because it then runs again until it settles (S3).
    """
    alone = alone and len(plan.roots) == 1 and all(len(each) < 2 for each in plan.dependents.values())  # noqa: PLR2004
    places: set[Place] = set()
    for name, step in plan.steps.items():
        if step.child is not None:
            places |= unrecorded(step.child, (*path, name), alone=alone)
        elif is_body(plan, name) and step.compensate is None and (alone or step.undo is None):
            places.add((path, name))
    return frozenset(places)


def recovered(head: MapHead, most: int) -> bool:
    """Note a takeover with bodies in flight; `False` once they have killed their process too often.

    Architecture 5.7: what shows that a takeover got anywhere is that a step settled.
    """
    head.recoveries = head.recoveries + 1 if head.seen == head.moves else 1
    head.seen = head.moves
    if head.recoveries <= most:
        return True
    head.recoveries = 0  # whoever lets it go on has mended something
    return False


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
    head.completed += state.status == "completed"
    head.left += bool(state.rollback_failures or state.left)
    if state.status == "failed":
        head.failed += 1
        if atomic and error is not None:
            break_off(head, error)


def break_off(head: MapHead, error: StepError, *, halt: bool = False) -> None:
    """Stop a map for a reason of its own: an element or the source failed, or the source halted."""
    if not head.stop:
        head.stop, head.error = "halt" if halt else "failure", error


def stop(head: MapHead, verb: Literal["undo", "cancel", "failure"], *, cut: bool) -> bool:
    """Stop a map because its level stops; tell whether elements in flight are to be cut off since now."""
    known = head.stop, head.cut
    if verb == "cancel" or not head.stop:
        head.stop = verb
    head.cut = head.cut or cut
    return head.cut and known != (head.stop, head.cut)


def forward_result(head: MapHead, flying: Collection[int]) -> m.Result | None:
    """Say how the map settles its step, once it does."""
    if flying:
        return None
    if head.stop == "failure" and head.error is not None:
        return m.Failure(head.error, started=head.started > 0)
    if head.stop == "halt" and head.error is not None:
        return m.Halting(head.error.message)
    if head.stop:
        return m.Interrupted()
    ended = head.total is not None and head.started >= head.total
    return m.Success(_encode(head.total)) if ended else None


def count_of(head: MapHead, result: m.Result, *, always: bool) -> m.MapCount | None:
    """Tell what the elements add up to, if the result does not say it or `always` is set."""
    says = isinstance(result, m.Success) and head.completed == head.started and not head.left
    return None if says and not always else m.MapCount(head.started, head.completed, head.left)


# -- back


def open_rollback(head: MapHead, rollback: int) -> bool:
    """Fix the work list: every element that began (R3). Opens once per rollback (R2); tell if it did."""
    if head.rollback >= rollback:
        return False
    head.again, head.rollback = head.rollback > 0, rollback
    head.next = head.high = head.started
    head.rolled = head.left = 0
    return True


def next_back(head: MapHead, flying: Collection[int], batch: int) -> int | None:
    """Have the next element come up, newest first. Moves the watermark."""
    if head.next == 0 or len(flying) >= batch:
        return None
    head.next -= 1
    return head.next


def settle_back(head: MapHead, flying: Collection[int], outcome: Outcome) -> None:
    """Count an element's outcome; it is not among `flying` any more."""
    head.rolled += 1
    head.left += outcome in (Outcome.FAILED, Outcome.UNAVAILABLE)
    head.high = max(flying, default=head.next - 1) + 1


def back_done(head: MapHead, flying: Collection[int]) -> bool:
    """Whether every element of the work list has its outcome (R7, R9)."""
    return head.rollback > 0 and head.next == 0 and not flying
