"""What a storage can do at all: the commits of a run, without runs."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from benchmarks.floor_redis import grouped_commits as redis_grouped
from benchmarks.floor_redis import single_commits as redis_single
from benchmarks.floor_sqlite import grouped_commits as sqlite_grouped
from benchmarks.floor_sqlite import single_commits as sqlite_single
from benchmarks.loops import Loop
from benchmarks.report import median

__all__ = ["Floor", "floor_of"]

CALLERS = 100


class Floor(Struct, frozen=True):
    """Bare commits on one storage.

    Args:
        single: seconds that each commit of one caller took.
        grouped: commits a second of 100 callers whose commits leave together.
    """

    single: Sequence[float]
    grouped: float

    @property
    def p50(self) -> float:
        """Seconds that a commit of one caller usually took."""
        return median(self.single) or 0.0


def floor_of(url: str, loop: Loop, n: int) -> Floor | None:
    """Measure about `n` commits of each kind; `None` for memory, where a commit is no more than its rules."""
    scheme = urlsplit(url).scheme
    if scheme == "memory":
        return None
    if scheme == "sqlite":
        return Floor(sqlite_single(url, n), sqlite_grouped(url, n, CALLERS))
    if scheme in ("redis", "rediss", "unix"):
        return Floor(loop.run_asyncio(redis_single(url, n)), loop.run_asyncio(redis_grouped(url, n, CALLERS)))
    raise SystemExit(f"{url}: the floor is measured on sqlite://, redis://, rediss:// and unix:// only")
