"""Records in the journal: they come back as they went, and an unknown one is refused."""

import msgspec
import pytest

from rewound.runtime.engine import records as r
from rewound.runtime.engine.records import UnknownRecord, decode_records, encode_record
from rewound.runtime.outcomes import StepError

ERROR = StepError("Boom", "it broke", "a", 2, "trace", {"x": "bad"})
EACH: list[r.Record] = [
    r.Spawned(1.5, b"in", "Test", 2, [["a"]], queued=True),
    r.Started(1.5, "a", 1),
    r.Succeeded(1.5, "a", b"\x00\xff", skipped=True),
    r.Failed(1.5, "a", ERROR, started=False, retry_at=2.5),
    r.Halted(1.5, "a", "enough"),
    r.Cut(1.5, "a"),
    r.Asked(1.5, "undo", "why"),
    r.Expired(1.5, 3.0),
    r.RollbackOpened(1.5),
    r.HandlerFailed(1.5, "a", "undo", 1, 9.0),
    r.HandlerSettled(1.5, "a", "compensate", ERROR),
    r.Ended(1.5, "halted"),
    r.Recovered(1.5),
    r.Parked(1.5, "why"),
    r.Resumed(1.5),
    r.Retried(1.5),
    r.Within(1.5, ("child", "inner"), r.Started(1.5, "a", 1)),
    r.Counted(1.5, "a", 3, 2, 1),
]


def test_every_record_comes_back_as_it_went() -> None:
    """A journal decodes to what was encoded, field by field and class by class."""
    assert decode_records(map(encode_record, EACH)) == EACH


def test_every_tag_is_used_once() -> None:
    """Architecture 5.8: tags are never reused; a new record takes the next number."""
    tags = [record.__struct_config__.tag for record in EACH]
    assert tags == list(range(1, 19))
    assert len(EACH) == len(r.Record.__subclasses__())


@pytest.mark.parametrize(
    "raw", [msgspec.msgpack.encode([99, 1.5]), b"\xc1", msgspec.msgpack.encode([2, 1.5])]
)
def test_a_record_that_cannot_be_read_is_refused_with_its_position(raw: bytes) -> None:
    """Architecture 5.8: an unknown tag (or a broken record) is a refusal, not a crash."""
    with pytest.raises(UnknownRecord, match=r"record 1 of the journal .*format 1.* newer version"):
        decode_records([encode_record(EACH[0]), raw])


def test_a_record_may_have_grown() -> None:
    """Architecture 5.8: fields that a newer version added are passed over."""
    raw = msgspec.msgpack.encode([2, 1.5, "a", 1, "new"])
    assert decode_records([raw]) == [r.Started(1.5, "a", 1)]


def test_trailing_fields_may_be_missing() -> None:
    """Architecture 5.8: a record of an older version gets the defaults."""
    raw = msgspec.msgpack.encode([3, 1.5, "a", b""])
    assert decode_records([raw]) == [r.Succeeded(1.5, "a", b"", skipped=False)]
