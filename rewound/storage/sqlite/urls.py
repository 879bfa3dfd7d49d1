"""SQLite URLs."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from rewound.errors import StorageConfigError
from rewound.storage.sqlite.storage import SqliteStorage

__all__ = ["open_sqlite"]

LEVELS = ("OFF", "NORMAL", "FULL", "EXTRA")


def open_sqlite(url: str, **options: Any) -> SqliteStorage:
    """Return the storage that a URL names, not yet open.

    Args:
        url: `sqlite:///relative.db` or `sqlite:////absolute.db`; `?synchronous=FULL` may follow.
        **options: as for `SqliteStorage`; the URL's come first.

    Raises:
        StorageConfigError: the URL names no file, or an unknown option.
    """
    parts = urlsplit(url)
    path = unquote(parts.path)[1:]
    if parts.netloc or path in ("", ":memory:"):
        raise StorageConfigError(
            f"{url} names no file; write sqlite:///relative.db or sqlite:////absolute.db, "
            "or memory:// to keep runs in memory"
        )
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    options["synchronous"] = _level(url, settings.pop("synchronous", options.get("synchronous", "NORMAL")))
    if settings:
        raise StorageConfigError(f"{url} has unknown options: {', '.join(settings)}; known is synchronous")
    return SqliteStorage(path, **options)


def _level(url: str, name: str) -> str:
    if name.upper() not in LEVELS:
        raise StorageConfigError(f"{url}: synchronous={name} is unknown; use one of {', '.join(LEVELS)}")
    return name.upper()
