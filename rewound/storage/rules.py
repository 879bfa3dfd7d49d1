"""The rules of writing, over `Tables`: who may write, what a repeat is, when a run is let go.

Each function is one atomic operation: it checks everything, then writes. `now` is the storage's clock.
"""

from msgspec import UNSET, Struct, UnsetType

from rewound.errors import ClaimLost, JournalMismatch
from rewound.storage.entries import Entry, Tables
from rewound.storage.protocol import (
    Appended,
    Claim,
    Commit,
    Created,
    Head,
    Mail,
    NewRun,
    Node,
    Notice,
)
from rewound.storage.refusals import lost, missing, other_length

__all__ = [
    "REPLY_KEPT",
    "Terms",
    "acknowledge",
    "append",
    "claim",
    "create",
    "find",
    "holds",
    "join",
    "nodes",
    "post",
    "release",
    "renew",
    "unwatch",
    "watch",
]

REPLY_KEPT = 600.0
"""Seconds that a reply waits for its sender."""


class Terms(Struct, frozen=True):
    """How a run is let go: see `Storage.release`."""

    retention: float
    wake: bool = False
    due: float | UnsetType | None = UNSET


# -- nodes


def join(tables: Tables, node: str, lease: float, now: float) -> None:
    """Start a node's lease, and forget those that ended: having none is the same."""
    for other, expires in list(tables.leases().items()):
        if expires <= now:
            tables.set_lease(other, None)
    tables.set_lease(node, now + lease)


def renew(tables: Tables, node: str, lease: float, now: float) -> bool:
    """Extend a lease that has not expired."""
    alive = is_alive(tables, node, now)
    if alive:
        tables.set_lease(node, now + lease)
    return alive


def is_alive(tables: Tables, node: str, now: float) -> bool:
    """Tell whether the node's lease exists. Not at its last instant any more, like a TTL of 0."""
    expires = tables.lease(node)
    return expires is not None and expires > now


def nodes(tables: Tables, now: float) -> list[Node]:
    """List live nodes, and dead ones that still own runs."""
    live = {node: expires for node, expires in tables.leases().items() if expires > now}
    dead = [Node(node, None) for node in tables.owners() if node not in live]
    return [Node(node, expires) for node, expires in live.items()] + dead


# -- runs


def find(tables: Tables, run_id: str, now: float) -> Entry | None:
    """Return a run, unless it has expired: purged or not, it is gone then."""
    entry = tables.entry(run_id)
    if entry is None or (entry.expires is not None and entry.expires <= now):
        return None
    return entry


def create(tables: Tables, new: NewRun, node: str | None, now: float) -> Created:
    """Create a run, or find what this or another call created."""
    entry = find(tables, new.run_id, now)
    if entry is None:
        entry = _add(tables, new, node, now)
    created = entry.origin == new.commit
    owned = created and node is not None and entry.node == node and entry.nonce == new.nonce
    return Created(entry.head(), created, _claim_of(entry) if owned else None)


def _add(tables: Tables, new: NewRun, node: str | None, now: float) -> Entry:
    expired = tables.entry(new.run_id)
    if expired is not None:
        tables.remove(expired)
    entry = Entry(
        run_id=new.run_id,
        reactor=new.reactor,
        status=new.status,
        terminal=False,
        created=now,
        updated=now,
        length=len(new.records),
        commit=new.commit,
        epoch=0 if node is None else 1,
        nonce=new.nonce,
        node=node,
        format=new.format,
        fingerprint=new.fingerprint,
        key=new.key,
        origin=new.commit,
        woken=node is None,
    )
    tables.add(entry, new.records)
    return entry


def _claim_of(entry: Entry) -> Claim:
    return Claim(entry.run_id, entry.node or "", entry.epoch, entry.nonce)


def claim(tables: Tables, head: Head, node: str, nonce: str, now: float) -> Claim | None:
    """Compare-and-set on the epoch and nonce of `head`; the nonce tells a repeat."""
    entry = find(tables, head.run_id, now)
    if entry is None:
        return None
    if entry.node == node and entry.nonce == nonce:
        return _claim_of(entry)
    if (entry.epoch, entry.nonce) != (head.epoch, head.nonce):
        return None
    if entry.node is not None and is_alive(tables, entry.node, now):
        return None
    entry.node, entry.nonce = node, nonce
    entry.epoch += 1
    entry.expires = None
    entry.woken = entry.mail > 0
    tables.write(entry)
    return _claim_of(entry)


def append(tables: Tables, commit: Commit, now: float) -> Appended:
    """Write one commit under its claim (promises 1, 2 and 5)."""
    entry = find(tables, commit.claim.run_id, now)
    if entry is None:
        raise JournalMismatch(missing(commit))
    if entry.commit == commit.id:
        return Appended(entry.length, commit.release and not holds(entry, commit.claim), entry.mail)
    if not holds(entry, commit.claim):
        raise ClaimLost(lost(commit.claim, entry))
    if entry.length != commit.expected:
        raise JournalMismatch(other_length(commit, entry))
    return _commit(tables, entry, commit, now)


def _commit(tables: Tables, entry: Entry, commit: Commit, now: float) -> Appended:
    entry.commit, entry.updated = commit.id, now
    entry.length += len(commit.records)
    if commit.status is not None:
        entry.status = commit.status
    retained = commit.retain or (entry.retained and commit.terminal is None)
    if commit.terminal is not None:
        entry.terminal = commit.terminal
    entry.retained = entry.terminal and retained
    for answer in commit.answers:
        sender = tables.take_mail(entry.run_id, answer.mail_id)
        if sender is not None:
            entry.mail -= 1
            tables.add_reply(answer, now + REPLY_KEPT)
            tables.notify(sender, Notice("reply", answer.mail_id))
    _set_alarm(entry, commit.due)
    if commit.release and entry.mail == 0:
        _let_go(entry, Terms(commit.retention, commit.wake), now)
    else:
        entry.woken = entry.mail > 0
    tables.write(entry, commit.records)
    if entry.watched:
        for node in tables.watchers(entry.run_id):
            tables.notify(node, Notice("changed", entry.run_id))
    return Appended(entry.length, entry.node is None, entry.mail)


def holds(entry: Entry, claim: Claim) -> bool:
    """Tell whether the claim is the run's."""
    return entry.node is not None and entry.nonce == claim.nonce and entry.epoch == claim.epoch


def _set_alarm(entry: Entry, due: float | UnsetType | None) -> None:
    if due is not UNSET:
        entry.due = entry.alarm = due


def _let_go(entry: Entry, terms: Terms, now: float) -> None:
    entry.node = None
    entry.woken = terms.wake
    entry.expires = now + terms.retention if entry.terminal and not entry.retained else None


def release(tables: Tables, claim: Claim, terms: Terms, now: float) -> bool:
    """Give a claim up, unless mail is unread. A run that is gone needs no release."""
    entry = find(tables, claim.run_id, now)
    if entry is None:
        return True
    if (entry.epoch, entry.nonce) != (claim.epoch, claim.nonce):
        raise ClaimLost(lost(claim, entry))
    if entry.node is None:
        return True
    if entry.mail:
        return False
    _set_alarm(entry, terms.due)
    _let_go(entry, terms, now)
    tables.write(entry)
    return True


def acknowledge(tables: Tables, run_id: str, retention: float, now: float) -> bool:
    """Let a retained run expire; at once its retention starts, or at its release if it is claimed."""
    entry = find(tables, run_id, now)
    if entry is None or not entry.terminal:
        return False
    if entry.retained:
        entry.retained = False
        entry.expires = now + retention if entry.node is None else None
        tables.write(entry)
    return True


# -- mail and watchers


def post(tables: Tables, run_id: str, mail: Mail, now: float) -> Head | None:
    """Store mail once, also if it was answered meanwhile, and hint at it."""
    entry = find(tables, run_id, now)
    if entry is None:
        return None
    if tables.reply(mail.id, now) is not None:
        return entry.head()
    if not tables.has_mail(run_id, mail.id):
        tables.add_mail(run_id, mail)
        entry.mail += 1
        entry.woken = True
        tables.write(entry)
    if entry.node is not None:
        tables.notify(entry.node, Notice("mail", run_id))
    return entry.head()


def watch(tables: Tables, run_id: str, node: str, now: float) -> Head | None:
    """Have the node told of every append."""
    entry = find(tables, run_id, now)
    if entry is None:
        return None
    tables.watch(run_id, node)
    if not entry.watched:
        entry.watched = True
        tables.write(entry)
    return entry.head()


def unwatch(tables: Tables, run_id: str, node: str) -> None:
    """End `watch`."""
    entry = tables.entry(run_id)
    if entry is not None and entry.watched:
        tables.unwatch(run_id, node)
        entry.watched = bool(tables.watchers(run_id))
        tables.write(entry)
