"""From measurements to one line of JSON."""

import importlib.metadata
import platform
import resource
import sqlite3
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from benchmarks.cases import Setup

__all__ = ["Measured", "line_of", "median", "peak_mib", "percentile"]

PACKAGES = ("rewound", "anyio", "redis", "uvloop", "trio")


class Measured(Struct, frozen=True):
    """What one case found out.

    Args:
        unit: what `count` counts, and `per_second` is in.
        count: how many were done.
        seconds: in how many seconds.
        took: seconds that each took, in any order, for the percentiles.
        more: fields that only this case has.
        peak: MiB that the process took at most; default: this one.
    """

    unit: str
    count: int
    seconds: float
    took: Sequence[float] = ()
    more: dict[str, Any] = {}
    peak: float | None = None

    @property
    def per_second(self) -> float:
        """How many a second."""
        return self.count / self.seconds


def line_of(case: str, measured: Measured, store: str, setup: "Setup") -> dict[str, Any]:
    """Return the fields of the line, the common ones first."""
    return {
        "case": case,
        "n": setup.n,
        "unit": measured.unit,
        "seconds": round(measured.seconds, 3),
        "per_second": round(measured.per_second, 1),
        "p50_ms": milliseconds(median(measured.took)),
        "p99_ms": milliseconds(percentile(measured.took, 0.99)),
        "peak_mib": round(peak_mib() if measured.peak is None else measured.peak, 1),
        **measured.more,
        "store": store,
        "loop": setup.loop.name,
        "versions": _versions(),
    }


def percentile(values: Sequence[float], part: float) -> float | None:
    """Return the value that `part` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


def median(values: Sequence[float]) -> float | None:
    """Return the value in the middle."""
    return percentile(values, 0.5)


def milliseconds(seconds: float | None) -> float | None:
    """Convert to milliseconds, to a microsecond."""
    return None if seconds is None else round(seconds * 1000, 3)


def peak_mib() -> float:
    """Return how much memory this process has had at most, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, **packages}
