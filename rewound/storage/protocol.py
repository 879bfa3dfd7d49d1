"""What a storage backend offers: journals, cells, claims, leases, mail, alarms, notices.

Storage knows nothing of sagas: a run is an id, a head of a few plain fields, a journal of opaque
records, and spaces of numbered, opaque cells. The promises that every backend keeps, and that the
conformance suite checks:

1.  One writer. `append`, `put` and `release` compare the claim's epoch and nonce with the head's, for
    equality, in the same atomic operation as the write. A refused one raises `ClaimLost`.
2.  An append carries the journal length it expects and a commit id. The same id at the head means
    that the append was stored and its answer lost: success. Any other length, or no head, raises
    `JournalMismatch` and writes nothing. The same holds for `put`, with the version of the space.
3.  A node's lease can be renewed only while it exists. Once expired it never comes back, so whoever
    saw it expired may claim that node's runs.
4.  Every index entry is written before the run-slot write that needs it and removed after the one
    that ends the need, so a crash between the two leaves a stale entry (dropped on sight), never a
    missing one.
5.  Mail is stored before it is handled and removed by the append that records its effect. A run with
    unread mail is never released.
6.  Every call may be repeated after a lost answer with the same effect as once. Backends do that
    themselves for as long as `patience` allows and then raise `StorageError`.
7.  A call that is cancelled leaves the backend usable and never hands its answer to another call.

Times are unix seconds on the storage's own clock (`now`); durations are seconds.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from anyio.abc import ObjectReceiveStream
from msgspec import UNSET, UnsetType

from rewound.storage.values import (
    Answer,
    Appended,
    Attention,
    Cells,
    Check,
    Claim,
    Commit,
    Created,
    Head,
    Journal,
    Mail,
    Need,
    NewRun,
    Node,
    Notice,
    Page,
    Query,
    Space,
)

__all__ = [
    "Answer",
    "Appended",
    "Attention",
    "Cells",
    "Check",
    "Claim",
    "Commit",
    "Created",
    "Head",
    "Journal",
    "Mail",
    "Need",
    "NewRun",
    "Node",
    "Notice",
    "Page",
    "Query",
    "Space",
    "Storage",
]


class Storage(Protocol):
    """Journals, claims, leases, mail, alarms and notices on one backend.

    Every method raises `StorageError` when the backend cannot be reached for longer than its patience.
    """

    # -- the backend itself

    async def open(self) -> None:
        """Connect and prepare; refuse an unfit server with `StorageConfigError`."""
        ...

    async def close(self) -> None:
        """Flush and disconnect. Idempotent."""
        ...

    async def now(self) -> float:
        """Return the storage's clock: unix seconds."""
        ...

    async def identity(self) -> str:
        """Return an id that changes when the server was restarted or failed over."""
        ...

    async def checks(self) -> list[Check]:
        """Examine the server's settings for `rewound doctor` and the start-up warning."""
        ...

    # -- nodes and their leases

    async def join(self, node: str, lease: float) -> None:
        """Start a node's lease. A node id is used once."""
        ...

    async def renew(self, node: str, lease: float) -> bool:
        """Extend the lease, only while it exists. `False`: it has expired, for good."""
        ...

    async def leave(self, node: str) -> None:
        """End a node's lease now. Idempotent."""
        ...

    async def nodes(self) -> list[Node]:
        """List the nodes with a lease, and those without one that may still own runs."""
        ...

    # -- runs

    async def create(self, new: NewRun, node: str | None) -> Created:
        """Create the run if no run has its id; claimed by `node`, or by nobody (then it is woken)."""
        ...

    async def load(self, run_id: str, start: int = 0, limit: int | None = None) -> Journal | None:
        """Read the head and the records from `start` on; `None` if there is no such run."""
        ...

    async def runs(self, query: Query, cursor: str | None = None, limit: int = 50) -> Page:
        """List heads by status and reactor, newest first, in pages of at most `limit`."""
        ...

    async def claim(self, head: Head, node: str, nonce: str) -> Claim | None:
        """Take the run over, if it has no owner or its owner's lease has expired.

        A compare-and-set on the epoch and nonce of `head`. An ended run can be claimed too: it does
        not expire while it is claimed. `None`: somebody else owns it, or it is gone.
        """
        ...

    async def append(self, commit: Commit) -> Appended:
        """Write one commit (see promises 1, 2, 5). Raises `ClaimLost` or `JournalMismatch`."""
        ...

    async def release(
        self, claim: Claim, *, retention: float, wake: bool = False, due: float | UnsetType | None = UNSET
    ) -> bool:
        """Give up a claim; an ended run expires after `retention` again, unless it is retained.

        `wake`: other nodes should take it over at once. Returns `False`, and keeps the claim, while mail
        is unread. Raises `ClaimLost` if the claim is another's; releasing twice is harmless.
        """
        ...

    async def acknowledge(self, run_id: str, retention: float) -> bool:
        """Let a retained run expire after `retention`. `False` if there is no such ended run."""
        ...

    async def purge(self, limit: int = 100) -> int:
        """Remove at most `limit` expired runs and what indexes hold of them; return how many."""
        ...

    # -- cells

    async def put(self, cells: Cells) -> int:
        """Write cells and header of a space together (see promises 1, 2); return its new version.

        Raises `ClaimLost`, or `JournalMismatch` naming the run and the space.
        """
        ...

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """Read the header and the cells from number `start` on, at most `count` numbers.

        A `count` of 0 reads the header alone. A space that was never written is one without cells;
        `None`: there is no such run. Raises `InputError` for a `count` above 1,000: read in pages.
        """
        ...

    # -- mail

    async def post(self, run_id: str, mail: Mail) -> Head | None:
        """Store mail for the run's owner and hint at it; `None` if there is no such run."""
        ...

    async def mail(self, run_id: str) -> list[Mail]:
        """Read a run's unread mail, oldest first."""
        ...

    async def reply(self, mail_id: str) -> bytes | None:
        """Read the reply to a piece of mail; it is kept for ten minutes."""
        ...

    # -- what needs an owner

    async def attention(
        self, node: str, reactors: frozenset[str], lease: float, cursor: str | None = None, limit: int = 100
    ) -> Attention:
        """Find runs of these reactors that need an owner or a nudge, in bounded pages.

        Runs owned by dead nodes; runs that were woken or whose alarm is due, if they are unowned or
        owned by `node` itself. A due alarm that is returned moves one `lease` ahead, so that it is not
        returned everywhere at once and comes back if its taker dies. Stale index entries are dropped.
        """
        ...

    async def scan(self, cursor: str | None = None, limit: int = 100) -> str | None:
        """Re-index one page of all runs after a failover that may have lost index entries.

        Returns the cursor of the next page, `None` after the last. Not for routine use.
        """
        ...

    # -- notices

    def notices(self, node: str) -> AbstractAsyncContextManager[ObjectReceiveStream[Notice]]:
        """Subscribe to a node's shared channel: one connection, however many runs and waiters.

        The stream starts with a `reset`, and yields one after every reconnection.
        """
        ...

    async def watch(self, run_id: str, node: str) -> Head | None:
        """Have `changed` notices of this run sent to the node; returns the head as it is now."""
        ...

    async def unwatch(self, run_id: str, node: str) -> None:
        """End `watch`. Idempotent."""
        ...
