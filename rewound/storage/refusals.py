"""What a refused writer is told."""

from rewound.storage.entries import Entry, SpaceEntry
from rewound.storage.protocol import Cells, Claim, Commit

__all__ = ["lost", "missing", "other_length", "other_version", "unreachable"]


def missing(commit: Commit) -> str:
    """Say that the run of an append is gone."""
    return (
        f"run {commit.claim.run_id} is not in storage, but its owner wrote {commit.expected} records: "
        "storage lost it, or somebody removed it"
    )


def lost(claim: Claim, entry: Entry) -> str:
    """Say that a claim is no longer the run's."""
    owner = f"node {entry.node}" if entry.node else "nobody"
    return (
        f"node {claim.node} no longer owns run {claim.run_id} (its claim has epoch {claim.epoch}): "
        f"{owner} does (epoch {entry.epoch})"
    )


def other_length(commit: Commit, entry: Entry) -> str:
    """Say that the journal is not as long as its owner thinks."""
    return (
        f"run {entry.run_id} has {entry.length} records in storage, but its owner wrote "
        f"{commit.expected}: storage lost some, or another client wrote to it"
    )


def unreachable(cells: Cells) -> str:
    """Say that the run of a space is gone."""
    return (
        f"run {cells.claim.run_id} is not in storage, but its owner wrote version {cells.expected} of its "
        f"space {cells.space!r}: storage lost it, or somebody removed it"
    )


def other_version(cells: Cells, space: SpaceEntry) -> str:
    """Say that a space is not as its owner thinks."""
    return (
        f"the space {cells.space!r} of run {cells.claim.run_id} has version {space.version} in storage, but "
        f"its owner wrote version {cells.expected}: storage lost some cells, or another client wrote to it"
    )
