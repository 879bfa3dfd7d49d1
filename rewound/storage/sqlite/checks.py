"""What `rewound doctor` looks at in a SQLite file and around it."""

import shutil
from pathlib import Path

from rewound.storage.protocol import Check
from rewound.storage.sqlite.tables import SqliteTables

__all__ = ["examine"]

LEAST_FREE = 100 * 1024 * 1024
MEANINGS = {
    0: Check("synchronous", "warn", "OFF: a power cut may damage the file; use NORMAL or FULL"),
    1: Check(
        "synchronous", "ok", "NORMAL: a killed process loses nothing, a power cut may lose the last commits"
    ),
    2: Check("synchronous", "ok", "FULL: every commit is on the disk when it is answered"),
    3: Check("synchronous", "ok", "EXTRA: every commit is on the disk when it is answered"),
}


def examine(tables: SqliteTables, path: Path) -> list[Check]:
    """Return the findings."""
    return [_journal(tables), _synchronous(tables), _space(shutil.disk_usage(path.parent).free, path)]


def _journal(tables: SqliteTables) -> Check:
    [(mode,)] = tables.connection.execute("PRAGMA journal_mode")
    if mode == "wal":
        return Check("journal", "ok", "write-ahead log: readers do not wait for the writer")
    return Check(
        "journal", "warn", f"{mode}: no write-ahead log on this file system, so reads wait for writes"
    )


def _synchronous(tables: SqliteTables) -> Check:
    [(level,)] = tables.connection.execute("PRAGMA synchronous")
    return MEANINGS[level]


def _space(free: int, path: Path) -> Check:
    if free >= LEAST_FREE:
        return Check("disk", "ok", f"{free // 1024**2} MiB are free")
    return Check(
        "disk", "warn", f"only {free // 1024**2} MiB are free in {path.parent}; a full disk stops all runs"
    )
