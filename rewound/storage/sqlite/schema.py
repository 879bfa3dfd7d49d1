"""The schema of the file, its versions, and how a connection to it is opened."""

import sqlite3
from pathlib import Path
from uuid import uuid4

from rewound.errors import StorageConfigError

__all__ = ["connect", "prepare"]

APPLICATION_ID = 0x5265776F
"""Marks the file as ours: "Rewo"."""

OLDEST_SQLITE = (3, 35, 0)

# A run's head is one JSON array (see `entries.Entry`), beside columns for the indexes alone: an append
# that moves no index entry writes nothing but `head` and its records. Times in columns are whole
# microseconds, because SQLite reads a decimal fraction back inexactly.
VERSION_1 = (
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        reactor TEXT NOT NULL,
        status TEXT NOT NULL,
        node TEXT,
        woken INTEGER NOT NULL,
        created INTEGER NOT NULL,
        alarm INTEGER,
        expires INTEGER,
        head TEXT NOT NULL
    )""",
    "CREATE INDEX runs_newest ON runs (created, run_id)",
    "CREATE INDEX runs_by_status ON runs (status, created, run_id)",
    "CREATE INDEX runs_by_reactor ON runs (reactor, created, run_id)",
    "CREATE INDEX runs_by_both ON runs (reactor, status, created, run_id)",
    "CREATE INDEX runs_owned ON runs (node, run_id) WHERE node IS NOT NULL",
    "CREATE INDEX runs_woken ON runs (node, run_id) WHERE woken = 1",
    "CREATE INDEX runs_alarms ON runs (node, alarm, run_id) WHERE alarm IS NOT NULL",
    "CREATE INDEX runs_expiring ON runs (expires) WHERE expires IS NOT NULL",
    """CREATE TABLE records (
        run INTEGER, seq INTEGER, data BLOB NOT NULL, PRIMARY KEY (run, seq)
    ) WITHOUT ROWID""",
    """CREATE TABLE mail (
        seq INTEGER PRIMARY KEY, run_id TEXT NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL,
        sender TEXT NOT NULL, UNIQUE (run_id, id)
    )""",
    """CREATE TABLE replies (
        mail_id TEXT PRIMARY KEY, reply BLOB NOT NULL, expires INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX replies_expiring ON replies (expires)",
    "CREATE TABLE watches (run_id TEXT, node TEXT, PRIMARY KEY (run_id, node)) WITHOUT ROWID",
    "CREATE TABLE nodes (id TEXT PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE notices (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, node TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
        expires INTEGER NOT NULL
    )""",
    "CREATE INDEX notices_expiring ON notices (expires)",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
)

# Cells know their space by its number alone: its name may be long, and a run may have many.
VERSION_2 = (
    """CREATE TABLE spaces (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
        write_id TEXT NOT NULL, header BLOB, UNIQUE (run, name)
    )""",
    """CREATE TABLE cells (
        space INTEGER, number INTEGER, value BLOB NOT NULL, PRIMARY KEY (space, number)
    ) WITHOUT ROWID""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (VERSION_1, VERSION_2)
"""What leads from each version of the schema to the next; `PRAGMA user_version` counts them."""


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    """Open the file in write-ahead mode, without waiting for locks: who calls knows for how long.

    Raises:
        StorageConfigError: SQLite is too old, or the file is another program's or a newer Rewound's: it
            is left as it is.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StorageConfigError(f"SQLite {sqlite3.sqlite_version} is too old: {needed} or newer is needed")
    connection = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
    try:
        _refuse_foreign(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(connection: sqlite3.Connection) -> str:
    """Bring the schema up to date, in one transaction; return the file's identity."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        _migrate(connection)
        [(identity,)] = connection.execute("SELECT value FROM meta WHERE name = 'identity'")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return str(identity)


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    [(application,)] = connection.execute("PRAGMA application_id")
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
    if tables and application != APPLICATION_ID:
        raise StorageConfigError(f"{path} is a database of another program; give Rewound a file of its own")
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise StorageConfigError(
            f"{path} was written by a newer Rewound (schema {version}, this one knows {len(MIGRATIONS)}); "
            "upgrade Rewound here, or use another file"
        )


def _migrate(connection: sqlite3.Connection) -> None:
    version = _version(connection)
    for migration in MIGRATIONS[version:]:
        for statement in migration:
            connection.execute(statement)
    if version == 0:
        connection.execute("INSERT INTO meta VALUES ('identity', ?)", (uuid4().hex,))
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(connection: sqlite3.Connection) -> int:
    [(version,)] = connection.execute("PRAGMA user_version")
    return int(version)
