"""One call on its way to the thread that owns the connection, and back."""

from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

from rewound.errors import RewoundError
from rewound.storage.sqlite.tables import SqliteTables

__all__ = ["Job"]

T = TypeVar("T")


class Job(Generic[T]):
    """What to do in a transaction, and what came of it. Made and awaited in the event loop.

    Args:
        act: does it; it may run more than once, each time in a transaction that was rolled back but the
            last.
        run_ids: runs that it will look at, read together with those of other jobs.
        spaces: spaces that it will write, by run and name; likewise.
        urgent: goes before jobs that are not.
        size: bytes that it writes, to bound a transaction.
    """

    def __init__(
        self,
        act: Callable[[SqliteTables], T],
        run_ids: tuple[str, ...] = (),
        *,
        spaces: tuple[tuple[str, str], ...] = (),
        urgent: bool = False,
        size: int = 0,
    ) -> None:
        self.run_ids, self.spaces, self.urgent, self.size = run_ids, spaces, urgent, size
        self.abandoned = False
        self._act = act
        self._values: list[T] = []
        self._error: Exception | None = None
        self._done = anyio.Event()

    def run(self, tables: SqliteTables) -> None:
        """Act, in the thread; a refusal is this job's alone, any other error the transaction's."""
        self._values, self._error = [], None
        try:
            self._values.append(self._act(tables))
        except RewoundError as refusal:
            self._error = refusal

    def fail(self, error: Exception) -> None:
        """Note why it could not be done, in the thread."""
        self._error = error

    def finish(self) -> None:
        """Let the caller go on, in the event loop."""
        self._done.set()

    async def answer(self) -> T:
        """Wait for the end; a caller that is cancelled abandons the job, begun or not."""
        try:
            await self._done.wait()
        finally:
            self.abandoned = not self._done.is_set()
        if self._error is not None:
            raise self._error
        return self._values[0]
