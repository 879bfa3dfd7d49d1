"""How far the maps of a run have come, forward and back (rule V3)."""

from msgspec import Struct

__all__ = ["MapProgress", "RollbackProgress"]


class RollbackProgress(Struct, frozen=True):
    """How far a map has been taken back.

    Args:
        total: elements that had begun; each of them comes up.
        settled: those that have their outcome.
        failed: those of them that could not be taken back altogether.
    """

    total: int
    settled: int
    failed: int

    @property
    def outstanding(self) -> int:
        """How many have no outcome yet."""
        return self.total - self.settled


class MapProgress(Struct, frozen=True):
    """How far a map has come.

    Args:
        total: how many elements it has; `None` while its source has not been read to the end.
        started: elements that have begun.
        settled: those that are at their end, whatever it is.
        failed: those of them that failed, and have taken themselves back.
        rollback: how far it has been taken back, once that has begun.

    Example:
        >>> progress = (await run.maps())["charges"]
        >>> f"{progress.settled} of {progress.total}"
        '120 of 2000'
    """

    total: int | None
    started: int
    settled: int
    failed: int
    rollback: RollbackProgress | None = None
