"""Jobs together in one transaction: all of them, none, or again."""

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rewound.storage.protocol import Notice
from rewound.storage.sqlite.failures import describe, passes
from rewound.storage.sqlite.job import Job
from rewound.storage.sqlite.tables import SqliteTables

__all__ = ["Transactions"]

LONGEST = 0.05
"""Seconds that a transaction may take, so that other processes get the lock for their heartbeats."""

Sent = list[tuple[str, Notice]]


class Transactions:
    """Runs jobs on a connection, in the thread that owns it.

    Args:
        connection: of this thread.
        path: of its file, for messages.
        begin: `BEGIN IMMEDIATE` to write, `BEGIN` to read.
        clock: the storage's time.
        patience: for how many seconds a failure that may pass is waited out.
        local: returns the nodes that get their notices in this process.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        begin: str,
        clock: Callable[[], float],
        patience: float,
        local: Callable[[], set[str]],
    ) -> None:
        self.connection = connection
        self._path, self._begin, self._clock = path, begin, clock
        self._patience, self._local = patience, local

    def run(self, jobs: Sequence[Job[Any]]) -> tuple[int, Sent]:
        """Do the first jobs, as many as fit into the time; return their number, and notices to deliver."""
        give_up = time.monotonic() + self._patience
        pause = 0.001
        while True:
            try:
                return self._once(jobs)
            except sqlite3.Error as error:
                self._roll_back()
                if not passes(error) or time.monotonic() >= give_up or _nobody_waits(jobs):
                    return self._give_up(jobs, error)
            except Exception as error:  # noqa: BLE001
                self._roll_back()
                return self._give_up(jobs, error)
            # Short and irregular: SQLite's own busy handler waits up to 100 ms, too long to find the gap
            # between two transactions of a busy process.
            time.sleep(random.uniform(pause / 2, pause))  # noqa: S311
            pause = min(pause * 1.5, 0.01)

    def _once(self, jobs: Sequence[Job[Any]]) -> tuple[int, Sent]:
        stop = time.monotonic() + LONGEST
        self.connection.execute(self._begin)
        tables = SqliteTables(self.connection, self._clock())
        run_ids = [run_id for job in jobs for run_id in job.run_ids]
        tables.preload(run_ids, [space for job in jobs for space in job.spaces])
        done = 0
        for job in jobs:
            job.run(tables)
            done += 1
            if time.monotonic() > stop:
                break
        tables.flush()
        notices = tables.publish(self._local())
        self.connection.execute("COMMIT")
        return done, notices

    def _give_up(self, jobs: Sequence[Job[Any]], error: Exception) -> tuple[int, Sent]:
        """Fail a job, or try the jobs one by one: what one of them holds must not fail the others."""
        passing = isinstance(error, sqlite3.Error) and passes(error)
        if len(jobs) > 1 and not passing:
            sent = [self.run([job])[1] for job in jobs]
            return len(jobs), [notice for notices in sent for notice in notices]
        for job in jobs:
            job.fail(describe(error, self._path) if isinstance(error, sqlite3.Error) else error)
        return len(jobs), []

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")


def _nobody_waits(jobs: Sequence[Job[Any]]) -> bool:
    """Tell whether all callers gave up, so that closing need not wait out a lock for them."""
    return all(job.abandoned for job in jobs)
