"""What storage is told and what it answers: plain values."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

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
]


class Claim(Struct, frozen=True):
    """The right to write one run.

    Args:
        run_id: the run.
        node: the node that holds it.
        epoch: grows by one with every claim of this run.
        nonce: random, chosen by the claimer; a repeated claim is recognised by it.
    """

    run_id: str
    node: str
    epoch: int
    nonce: str


class Head(Struct, frozen=True):
    """Everything about a run but its journal.

    Args:
        run_id: the run.
        reactor: the stored name of what it runs.
        status: opaque text, compared and listed only.
        terminal: whether the run has ended; such a run expires after its retention.
        created: when it was created.
        updated: when its head was last written by an append.
        length: records in its journal.
        commit: id of the newest append.
        epoch: of the newest claim.
        nonce: of the newest claim.
        node: who owns it, or `None`.
        format: version of the record format.
        fingerprint: of the plan that wrote it.
        key: the idempotency key it was created with.
        due: when its alarm is due.
        expires: when it will be purged; `None` while it is live, claimed or retained.
        retained: it has ended but does not expire until somebody acknowledged it.
        mail: unread mail.
    """

    run_id: str
    reactor: str
    status: str
    terminal: bool
    created: float
    updated: float
    length: int
    commit: str
    epoch: int
    nonce: str
    node: str | None
    format: int
    fingerprint: str
    key: str | None = None
    due: float | None = None
    expires: float | None = None
    retained: bool = False
    mail: int = 0


class NewRun(Struct, frozen=True):
    """A run to create. `commit` is the id of this first append; `nonce` that of the first claim."""

    run_id: str
    reactor: str
    status: str
    format: int
    fingerprint: str
    records: Sequence[bytes]
    commit: str
    nonce: str
    key: str | None = None


class Created(Struct, frozen=True):
    """What `create` did. `claim` is given if this call created the run for a node."""

    head: Head
    created: bool
    claim: Claim | None = None


class Journal(Struct, frozen=True):
    """A run's head and (part of) its records, read together."""

    head: Head
    records: list[bytes]


class Answer(Struct, frozen=True):
    """The reply to one piece of mail, stored by the append that records its effect."""

    mail_id: str
    reply: bytes


class Commit(Struct, frozen=True):
    """One append.

    Args:
        claim: compared with the head's.
        id: unique per append; a repeat is recognised by it.
        expected: the journal's length before it.
        records: may be empty (mail that changes nothing still gets its answer).
        status: the new status; `None` keeps it.
        terminal: whether the run has ended after this; `None` keeps it.
        retention: how long an ended run is kept from its release on, in seconds.
        retain: an ended run is kept until acknowledged.
        due: when the run's alarm is due; `None` removes it, `UNSET` keeps it.
        answers: mail that this append handles.
        release: give up the claim in the same operation, unless mail is unread afterwards.
        wake: with `release`: the run needs another owner at once.
    """

    claim: Claim
    id: str
    expected: int
    records: Sequence[bytes] = ()
    status: str | None = None
    terminal: bool | None = None
    retention: float = 604_800.0
    retain: bool = False
    due: float | UnsetType | None = UNSET
    answers: Sequence[Answer] = ()
    release: bool = False
    wake: bool = False


class Appended(Struct, frozen=True):
    """What `append` did: the journal's new length, and whether the claim was released.

    `mail` is the number of unread pieces left; a release that was asked for is refused while it is not 0.
    """

    length: int
    released: bool = False
    mail: int = 0


class Cells(Struct, frozen=True):
    """One write to a space of a run: some of its cells, and its header.

    A space is a set of numbered cells of a run, with a header and a version. It exists from its first
    write on and leaves with its run; there may be thousands in one.

    Args:
        claim: compared with the head's.
        space: names the space within its run.
        id: unique per write; a repeat is recognised by it.
        expected: the space's version before it; 0 if this is its first write. Each write adds 1.
        cells: by number, from 0 on; they replace those of the same number.
        header: the space's from now on; `None` keeps the one it has.
    """

    claim: Claim
    space: str
    id: str
    expected: int
    cells: Mapping[int, bytes] = {}
    header: bytes | None = None


class Space(Struct, frozen=True):
    """A space's header and (part of) its cells, read together.

    Args:
        version: how many writes it has had; 0 if there was none.
        header: as last written; empty if it never was.
        cells: those that were asked for and are there, by number, in order.
    """

    version: int
    header: bytes
    cells: dict[int, bytes]


class Mail(Struct, frozen=True):
    """A durable message to a run's owner.

    Args:
        id: unique; posting it twice stores it once.
        body: opaque.
        sender: the node that waits for the reply.
    """

    id: str
    body: bytes
    sender: str


class Node(Struct, frozen=True):
    """A node that was seen: its id, and when its lease expires (`None`: it has expired)."""

    id: str
    expires: float | None


class Need(Struct, frozen=True):
    """A run that somebody must look at, and why.

    Args:
        head: the run's head as read.
        reason: `dead`: its owner's lease expired. `wake`: it has mail or was released with work
            left. `alarm`: its alarm is due.
    """

    head: Head
    reason: Literal["dead", "wake", "alarm"]


class Attention(Struct, frozen=True):
    """One page of `Storage.attention`.

    Args:
        needs: runs to look at; each at most once per page.
        unknown: runs of reactors that were not asked for, by reactor name: seen, left to other nodes.
        cursor: for the next page; `None` after the last.
    """

    needs: list[Need]
    unknown: dict[str, int]
    cursor: str | None


class Query(Struct, frozen=True):
    """Which runs to list, newest first. Empty fields match everything."""

    status: str | None = None
    reactor: str | None = None


class Page(Struct, frozen=True):
    """One page of a listing. `cursor` is `None` after the last; runs added meanwhile do not shift it."""

    heads: list[Head]
    cursor: str | None


class Notice(Struct, frozen=True):
    """A hint from the shared channel of a node; it may be lost, so nobody relies on it alone.

    Args:
        kind: `mail`: run `id`, owned by this node, has mail. `changed`: run `id`, watched by this
            node, was written (or ended). `reply`: mail `id`, sent by this node, was answered.
            `reset`: hints may have been lost; look at everything once.
        id: the run's or the mail's id; empty for `reset`.
    """

    kind: Literal["mail", "changed", "reply", "reset"]
    id: str


class Check(Struct, frozen=True):
    """One finding of `Storage.checks`. `ok`, `warn` (the message says what is at risk) or `fail`."""

    name: str
    level: Literal["ok", "warn", "fail"]
    message: str
