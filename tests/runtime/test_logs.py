"""Log events: what a line, a record and its JSON look like (D1)."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from msgspec import Struct

from rewound.runtime.logs import JsonFormatter, log_event


class Order(Struct):
    """A value of a user's."""

    id: int
    item: str


class Colour(StrEnum):
    """A text that is not exactly a `str`."""

    RED = "red"


class Mute:
    """A value that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


class MuteText(str):
    """A text that cannot be shown."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError


class Keep(logging.Handler):
    """Keep the records it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.records.append(record)


@pytest.fixture
def kept() -> Iterator[list[logging.LogRecord]]:
    """Records of the logger `rewound.run`, enabled from INFO on."""
    logger, handler = logging.getLogger("rewound.run"), Keep()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.records
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)


def line_of(kept: list[logging.LogRecord], **fields: Any) -> str:
    """Log one event with these fields and return what follows its name."""
    log_event("rewound.run.started", **fields)
    return kept[-1].getMessage().removeprefix("rewound.run.started").removeprefix(" ")


def test_event_is_one_line_of_keys_and_values(kept: list[logging.LogRecord]) -> None:
    """D1: an event is its name, then `key=value` in the order given, at INFO."""
    log_event("rewound.run.started", run="r1", attempt=2, ok=True)
    (record,) = kept
    assert record.getMessage() == "rewound.run.started run=r1 attempt=2 ok=true"
    assert record.levelno == logging.INFO


def test_logger_is_the_first_two_segments(kept: list[logging.LogRecord]) -> None:
    """D1: `rewound.run.x.y` is logged by `rewound.run`, so one level governs one kind of event."""
    log_event("rewound.run.rollback.started", logging.WARNING)
    assert kept[0].name == "rewound.run"
    assert kept[0].levelno == logging.WARNING


def test_event_is_attributed_to_its_caller(kept: list[logging.LogRecord]) -> None:
    """`%(filename)s` names the file that logged, not this library's helper."""
    log_event("rewound.run.started")
    assert kept[0].filename == "test_logs.py"


def test_disabled_level_formats_nothing(kept: list[logging.LogRecord]) -> None:
    """A level that is off costs no formatting: the value's `__str__` is not called."""
    asked: list[str] = []

    class Spy:
        def __str__(self) -> str:
            asked.append("str")
            return "spy"

    log_event("rewound.run.started", logging.DEBUG, value=Spy())
    assert not kept
    assert not asked


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("two words", '"two words"'),
        ("", '""'),
        ('say "hi"', r'"say \"hi\""'),
        ("a=b", '"a=b"'),
        ("back\\slash", r'"back\\slash"'),
        ("a\nb", r'"a\nb"'),
        ("a\u2028b", r'"a\u2028b"'),
        ("\ud800", r'"\ud800"'),
        ("über", "über"),
        ("schöne Grüße", '"schöne Grüße"'),
        ("100%", "100%"),
        (Colour.RED, "red"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        (False, "false"),
        ({"a": 1}, r'"{\"a\": 1}"'),
        ([1, 2], '"[1, 2]"'),
        (Order(7, "tea"), r'"{\"id\": 7, \"item\": \"tea\"}"'),
        (Mute(), "<Mute>"),
        (MuteText("x"), "<MuteText>"),
        (ValueError("bad"), '"ValueError: bad"'),
        (1 + 2j, "(1+2j)"),
    ],
)
def test_values_are_quoted_where_needed(kept: list[logging.LogRecord], value: object, text: str) -> None:
    """A value stands bare if that is unambiguous, else quoted; whatever it is, the line stays one line."""
    assert line_of(kept, value=value) == f"value={text}"


def test_none_is_left_out(kept: list[logging.LogRecord]) -> None:
    """A field that has no value is not told."""
    assert line_of(kept, key=None, run="r1") == "run=r1"
    assert kept[0].__dict__["rewound"] == {"event": "rewound.run.started", "run": "r1"}


@pytest.mark.parametrize("value", ["x" * 5000, ["x" * 5000], {"a": "x" * 5000}])
def test_long_values_are_cut(kept: list[logging.LogRecord], value: object) -> None:
    """A value takes at most 1000 characters, in the line and on the record."""
    line_of(kept, value=value)
    told = kept[0].__dict__["rewound"]["value"]
    assert len(told) == 1000
    assert told.endswith("…")


def test_fields_stand_on_the_record(kept: list[logging.LogRecord]) -> None:
    """The record carries the fields as data, so that a formatter need not parse the line."""
    log_event("rewound.run.failed", run="r1", inputs={"order": Order(7, "tea")})
    assert kept[0].__dict__["rewound"] == {
        "event": "rewound.run.failed",
        "run": "r1",
        "inputs": {"order": {"id": 7, "item": "tea"}},
    }


def test_json_formatter_prints_the_fields(kept: list[logging.LogRecord]) -> None:
    """D1: `JsonFormatter` prints time, level, logger, event and the fields as one JSON object."""
    log_event("rewound.run.failed", logging.ERROR, run="r1", inputs={"order": 7}, level="gold")
    line = json.loads(JsonFormatter().format(kept[0]))
    assert datetime.fromisoformat(line.pop("time")).tzinfo == UTC
    assert line == {
        "level": "ERROR",
        "logger": "rewound.run",
        "event": "rewound.run.failed",
        "run": "r1",
        "inputs": {"order": 7},
        "level_": "gold",
    }


def test_json_formatter_prints_other_records() -> None:
    """A record of another library is printed by its message, so the formatter can serve a program."""
    record = logging.makeLogRecord({"msg": "took %d s\n", "args": (3,), "name": "other"})
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert json.loads(text)["message"] == "took 3 s\n"


def test_json_formatter_prints_the_traceback(kept: list[logging.LogRecord]) -> None:
    """A failure's traceback is one more key, so the event stays one line; it is formatted once."""
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        log_event("rewound.run.failed", logging.ERROR, exc_info=error)
    kept[0].exc_text = None  # pytest's own handler has formatted it
    text = JsonFormatter().format(kept[0])
    assert "\n" not in text
    assert json.loads(text)["exception"].endswith("ZeroDivisionError: division by zero")
    assert JsonFormatter().format(kept[0]) == text
