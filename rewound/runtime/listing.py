"""What listings of runs show."""

from msgspec import Struct

from rewound.storage.protocol import Head

__all__ = ["RunSummary", "summary_of"]


class RunSummary(Struct, frozen=True):
    """One row of `Runtime.runs`. Times are unix seconds on the storage's clock."""

    run_id: str
    reactor: str
    status: str
    created: float
    updated: float
    key: str | None = None


def summary_of(head: Head) -> RunSummary:
    """Return what a listing shows of a run."""
    return RunSummary(head.run_id, head.reactor, head.status, head.created, head.updated, head.key)
