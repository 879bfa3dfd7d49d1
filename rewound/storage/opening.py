"""Storage by URL."""

from typing import Any
from urllib.parse import urlsplit

from rewound.errors import StorageConfigError
from rewound.storage.memory import MemoryStorage
from rewound.storage.protocol import Storage

__all__ = ["open_storage"]

REDIS_SCHEMES = {
    "redis",
    "rediss",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
}
KNOWN = "memory://, sqlite:///file.db, redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"

_shared: dict[str, MemoryStorage] = {}


def open_storage(url: str, **options: Any) -> Storage:
    """Return the storage that a URL names, not yet connected: the runtime opens it.

    Args:
        url: `memory://` (a new one), `memory://name` (one per name and process),
            `sqlite:///relative.db`, `sqlite:////absolute.db`, or a Redis URL.
        **options: what the backend's class takes, such as `patience` in seconds.

    Raises:
        StorageConfigError: no backend has this scheme, or the backend cannot use the URL.

    Example:
        >>> storage = open_storage("memory://")
    """
    scheme = urlsplit(url).scheme
    if scheme == "memory":
        return _open_memory(urlsplit(url).netloc, options)
    if scheme == "sqlite":
        return _open_sqlite(url, options)
    if scheme in REDIS_SCHEMES:
        return _open_redis(url, options)
    raise StorageConfigError(f"storage URL with scheme {scheme!r} is unknown; use {KNOWN}")


def _open_memory(name: str, options: dict[str, Any]) -> Storage:
    if not name:
        return MemoryStorage(**options)
    if name not in _shared:
        _shared[name] = MemoryStorage(**options)
    return _shared[name]


def _open_sqlite(url: str, options: dict[str, Any]) -> Storage:
    """Import only now: some builds of Python have no sqlite3, and who uses Redis needs none."""
    from rewound.storage.sqlite import open_sqlite  # noqa: PLC0415

    return open_sqlite(url, **options)


def _open_redis(url: str, options: dict[str, Any]) -> Storage:
    """Import only now: redis is the slowest import here, and who uses SQLite needs none."""
    from rewound.storage.redis import open_redis  # noqa: PLC0415

    return open_redis(url, **options)
