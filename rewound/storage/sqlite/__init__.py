"""Storage in one SQLite file, for the processes of one machine."""

from rewound.storage.sqlite.storage import SqliteStorage, Synchronous
from rewound.storage.sqlite.urls import open_sqlite

__all__ = ["SqliteStorage", "Synchronous", "open_sqlite"]
