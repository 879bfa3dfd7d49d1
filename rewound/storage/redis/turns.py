"""What a turn of ownership means for the index: alarms set, claims released, ended runs expiring."""

from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from rewound.storage.protocol import Claim
from rewound.storage.redis.index import Changes
from rewound.storage.redis.keys import Keys, entry_name

__all__ = ["Due", "Settled", "Turn", "due_word"]

Due: TypeAlias = float | UnsetType | None


class Settled(Struct, frozen=True, array_like=True):
    """What a script says of a run after such a write.

    Args:
        released: whether the claim was given up.
        alarm: the cause of the alarm before, or empty.
        expires: when the run expires; empty if it does not.
        status: the run's now.
        reactor: the run's.
    """

    released: bool
    alarm: str
    expires: str
    status: str
    reactor: str


class Turn(Struct, frozen=True):
    """A write that may set an alarm or release a claim.

    A refused write takes nothing back: an earlier attempt of it, whose answer was lost, may have been
    accepted, and then its entries are needed. The sweep drops them otherwise.

    Args:
        claim: whose turn it is.
        cause: names the alarm: the commit, or the claim's nonce for a release without one.
        due: the alarm; `None` removes it, `UNSET` keeps it.
        release: the claim is given up.
        wake: another owner is needed at once.
        retention: seconds that an ended run is kept.
    """

    claim: Claim
    cause: str
    due: Due
    release: bool
    wake: bool
    retention: float

    def before(self, keys: Keys, now: float) -> Changes:
        """Return the entries that the write needs."""
        run_id, changes = self.claim.run_id, Changes()
        if isinstance(self.due, (int, float)):
            changes.add(keys.timer, entry_name(run_id, self.cause), self.due)
        if self.release:
            changes.add(keys.expiring, entry_name(run_id), now + self.retention)
            if self.wake:
                changes.add(keys.wake, entry_name(run_id, self.claim.nonce))
        return changes

    def after(self, keys: Keys, settled: Settled) -> Changes:
        """Return what the write made superfluous, or more precise."""
        run_id, changes = self.claim.run_id, Changes()
        if self.due is not UNSET and settled.alarm and settled.alarm != self.cause:
            changes.remove(keys.timer, entry_name(run_id, settled.alarm))
        if self.release:
            changes.remove(keys.expiring, entry_name(run_id))
        if settled.released:
            changes.remove(keys.owner(self.claim.node), entry_name(run_id, self.claim.nonce))
        elif self.wake:
            changes.remove(keys.wake, entry_name(run_id, self.claim.nonce))
        if settled.expires:
            name = entry_name(run_id, settled.status, settled.reactor)
            changes.add(keys.expiring, name, float(settled.expires))
        return changes


def due_word(due: Due) -> str:
    """Spell an alarm for a script."""
    if due is UNSET:
        return ""
    return "-" if due is None else repr(due)
