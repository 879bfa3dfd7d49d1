"""A run's journal, as its one writer sees it."""

import secrets
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from rewound.runtime.engine import RunState
from rewound.runtime.engine.records import Record, encode_record
from rewound.runtime.settings import Settings
from rewound.storage.protocol import Answer, Appended, Claim, Commit, Storage

__all__ = ["Ledger"]


class Ledger:
    """Appends under a claim, one append at a time, each with an id of its own.

    Args:
        storage: where the journal is.
        settings: how long ended runs are kept.
        claim: the right to write.
        length: records stored so far.
        status: the status stored so far.
        alarmed: whether an alarm is stored.
    """

    __slots__ = ("_alarmed", "_count", "_length", "_settings", "_status", "_storage", "_token", "claim")

    def __init__(
        self,
        storage: Storage,
        settings: Settings,
        claim: Claim,
        *,
        length: int,
        status: str,
        alarmed: bool = False,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self.claim = claim
        self._length = length
        self._status = status
        self._alarmed = alarmed
        # A commit id must not repeat when an owner is restarted under the same claim.
        self._token = secrets.token_hex(6)
        self._count = 0

    async def commit(
        self,
        state: RunState,
        records: Sequence[Record],
        answers: Sequence[Answer] = (),
        *,
        release: bool = False,
        due: float | None = None,
    ) -> Appended:
        """Append records, answer mail and, if asked, give the run up, in one operation.

        Args:
            state: the run's state, these records included.
            records: may be empty.
            answers: replies to mail.
            release: give up the claim; an ended run then expires.
            due: with `release`: when the run must be looked at again.

        Raises:
            ClaimLost: the run has another owner.
            JournalMismatch: storage has lost or other records.
            StorageError: storage cannot be reached.
        """
        self._count += 1
        moved = state.status != self._status
        appended = await self._storage.append(
            Commit(
                claim=self.claim,
                id=f"{self._token}-{self._count}",
                expected=self._length,
                records=[encode_record(record) for record in records],
                status=state.status if moved else None,
                terminal=state.terminal if moved else None,
                retention=self._settings.retention,
                retain=bool(state.rollback_failures or state.left),
                due=self._due(due, release=release),
                answers=answers,
                release=release,
            )
        )
        self._length, self._status = appended.length, state.status
        return appended

    async def release(self, *, wake: bool) -> bool:
        """Give the run up without recording anything; `False` while mail is unread."""
        return await self._storage.release(self.claim, retention=self._settings.retention, wake=wake)

    def _due(self, due: float | None, *, release: bool) -> float | UnsetType | None:
        """Leave the stored alarm alone unless it changes: most runs never have one."""
        if release and due is not None:
            self._alarmed = True  # to be cleared, should the release be refused
            return due
        if not self._alarmed:
            return UNSET
        self._alarmed = False
        return None
