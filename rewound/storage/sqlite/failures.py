"""What SQLite's errors mean to an operator, and which of them pass."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rewound.errors import StorageConfigError, StorageError

__all__ = ["describe", "passes", "patiently"]

T = TypeVar("T")

PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}

REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process keeps it locked; end that process, or raise `patience`",
    sqlite3.SQLITE_LOCKED: "another connection keeps it locked; end it, or raise `patience`",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk fails or the file system is gone; look at the system's log",
    sqlite3.SQLITE_READONLY: "it is read-only; let this user write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; its folder must exist and let this user write",
    sqlite3.SQLITE_PERM: "access is denied; let this user write the file and its folder",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database; use another file",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore a backup, or recover it with the sqlite3 shell",
}


def passes(error: Exception) -> bool:
    """Tell whether trying again may help."""
    return isinstance(error, sqlite3.OperationalError) and _code(error) in PASSING


def describe(error: sqlite3.Error, path: Path) -> StorageError:
    """Return the error of a call that failed while the file was open."""
    return StorageError(_message(error, path) + ". Nothing of this call was written")


def patiently(make: Callable[[], T], path: Path, patience: float) -> T:
    """Open the file, again while a failure may pass: another process may be creating it just now."""
    give_up = time.monotonic() + patience
    while True:
        try:
            return make()
        except sqlite3.Error as error:
            if not passes(error) or time.monotonic() >= give_up:
                raise StorageConfigError(_message(error, path)) from error
        time.sleep(0.01)


def _message(error: sqlite3.Error, path: Path) -> str:
    remedy = REMEDIES.get(_code(error), "look up this error in SQLite's documentation")
    return f"SQLite file {path}: {error}: {remedy}"


def _code(error: sqlite3.Error) -> int:
    """Return the primary code; `sqlite3` gives none to errors of its own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
