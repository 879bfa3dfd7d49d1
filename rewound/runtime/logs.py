"""Log events: standard `logging`, one line each, with the fields kept for structured output.

An event has a dotted name (`rewound.step.failed`); its first two segments name the logger, so
`logging.getLogger("rewound.step").setLevel(...)` addresses one kind. Nothing here configures logging:
handlers, levels and formats are the program's.
"""

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import msgspec

__all__ = ["JsonFormatter", "log_event"]

LIMIT: Final = 1000  # characters of one value; what is longer is cut, and ends in an ellipsis
_BARE: Final = re.compile(r"[^\s\"=\\\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]+")
_TAKEN: Final = frozenset({"time", "level", "logger", "message", "exception"})


def log_event(
    event: str,
    level: int = logging.INFO,
    /,
    *,
    exc_info: BaseException | bool | None = None,
    **fields: Any,
) -> None:
    """Log one event as `name key=value ...`.

    Costs one look-up when the level is disabled: values are formatted only if the event is logged.

    Args:
        event: its dotted name; the logger is named by the first two segments.
        level: a level of `logging`.
        exc_info: as in `logging`: an exception whose traceback follows the line.
        fields: what to tell. `None` is left out; values are cut at 1000 characters. They stand on
            the record as `record.rewound`, the event's name among them as `event`.

    Example:
        ```python
        log_event("rewound.step.failed", logging.WARNING, run=run_id, step="charge", error="Declined")
        ```
    """
    logger = _logger_of(event)
    if not logger.isEnabledFor(level):
        return
    told = {name: _plain(value) for name, value in fields.items() if value is not None}
    line = " ".join([event, *(f"{name}={_text(value)}" for name, value in told.items())])
    # The line goes in as an argument: handed over as the format, a % in it would be read as one.
    logger.log(
        level, "%s", line, exc_info=exc_info, extra={"rewound": {**told, "event": event}}, stacklevel=2
    )


class JsonFormatter(logging.Formatter):
    """Format records as JSON, one object a line.

    The keys are `time` (ISO 8601, UTC), `level`, `logger`, then the event's name and fields, or `message`
    for a record that is no event, and `exception` with the traceback if there is one. A field whose name is
    one of these gets a trailing underscore. Works for every logger, so it can serve the whole program.

    Example:
        ```python
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logging.basicConfig(handlers=[handler], level=logging.INFO)
        ```
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            **_fields_of(record),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, default=_shown)


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return an event's fields under names that are free, or the message of any other record."""
    fields: Mapping[str, Any] | None = getattr(record, "rewound", None)
    if fields is None:
        return {"message": record.getMessage()}
    return {"event": fields["event"]} | {
        f"{name}_" if name in _TAKEN else name: value for name, value in fields.items()
    }


@cache
def _logger_of(event: str) -> logging.Logger:
    return logging.getLogger(".".join(event.split(".")[:2]))


def _plain(value: Any) -> Any:
    """Return the value as JSON's own types, cut to the limit; nothing a user's value does may raise."""
    if isinstance(value, str):
        return _cut(_shown(value))
    if isinstance(value, BaseException):
        return _cut(f"{type(value).__name__}: {_shown(value)}")
    try:
        plain = msgspec.to_builtins(value, enc_hook=_shown, str_keys=True)
        encoded = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    except Exception:  # noqa: BLE001  a value that cannot be encoded is shown as text
        return _cut(_shown(value))
    return plain if len(encoded) <= LIMIT else _cut(encoded)


def _shown(value: Any) -> str:
    """Return `str(value)`, or its type if that raises."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001  a raising __str__ must not lose the event
        return f"<{type(value).__name__}>"


def _cut(text: str) -> str:
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"


def _text(value: Any) -> str:
    """Return a plain value in logfmt: bare where that is unambiguous, else quoted and escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if _BARE.fullmatch(text):
        return text
    # ensure_ascii escapes everything that could break the line or a stream's encoding.
    return json.dumps(text, ensure_ascii=not text.isprintable())
