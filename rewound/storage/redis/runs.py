"""Runs: create, load, claim, append, release, acknowledge."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import UNSET, Struct

from rewound.errors import ClaimLost, JournalMismatch
from rewound.storage.protocol import Appended, Claim, Commit, Created, Head, Journal, NewRun
from rewound.storage.redis.heads import new_fields, new_head, read_head
from rewound.storage.redis.index import Changes, Index, ServerClock
from rewound.storage.redis.keys import Keys, RunKeys, entry_name
from rewound.storage.redis.scripts import SCRIPTS, pack
from rewound.storage.redis.turns import Due, Settled, Turn, due_word
from rewound.storage.redis.wire import Wire

__all__ = ["Runs", "lost"]

REPLY_KEPT = b"600"
NO_MORE = b"0"
SENT_KEPT = 660.0


encode = msgspec.msgpack.Encoder().encode


class Told(Struct, frozen=True, array_like=True):
    """What the script of `append` answers when more than records was written, or mail waits.

    Args:
        length: of the journal.
        mail: unread pieces.
        old: the status before.
        created: when the run was created.
        settled: the rest.
    """

    length: int
    mail: int
    old: str
    created: str
    settled: Settled


# One word of msgpack, because redis-py takes as long for each word that it reads.
read_told = msgspec.msgpack.Decoder(Told).decode
read_settled = msgspec.msgpack.Decoder(Settled).decode


class Runs:
    """What concerns one run at a time. Every write is one script in the run's slot."""

    def __init__(self, wire: Wire, keys: Keys, index: Index, clock: ServerClock) -> None:
        self._wire = wire
        self._keys = keys
        self._index = index
        self._clock = clock

    # -- create and load

    async def create(self, new: NewRun, node: str | None) -> Created:
        """Create the run if no run has its id; claimed by `node`, or by nobody (then it is woken)."""
        run = self._keys.run(new.run_id)
        fields = new_fields(new, node)
        words = (encode(fields), *new.records)
        reply = await self._index.write(
            self._entries_for(new, node),
            run.tag,
            lambda deadline: SCRIPTS["create"].call((run.head, run.journal), deadline, *words),
            max(1, len(new.records)),
        )
        if isinstance(reply, bytes):
            claim = None if node is None else Claim(new.run_id, node, 1, new.nonce)
            return Created(new_head(new, node, float(reply)), created=True, claim=claim)
        return self._existing(new, node, reply)

    def _entries_for(self, new: NewRun, node: str | None) -> Changes:
        keys, name = self._keys, entry_name(new.run_id, new.nonce)
        entries = Changes().new(keys.every, new.run_id)
        entries.new(keys.status(new.status), new.run_id).new(keys.reactor(new.reactor), new.run_id)
        if node is None:
            return entries.add(keys.wake, name)
        return entries.add(keys.owner(node), name).new(keys.nodes, node)

    def _existing(self, new: NewRun, node: str | None, reply: list[bytes]) -> Created:
        """Tell a repeat of the call that created the run from another call; take back our entries."""
        stored = read_head(new.run_id, reply)
        assert stored is not None  # noqa: S101  # the script returns only heads that exist
        head = stored.head
        created = stored.origin == new.commit
        owned = created and node is not None and (head.node, head.nonce) == (node, new.nonce)
        stale = Changes()
        if not created and head.nonce != new.nonce:
            name = entry_name(new.run_id, new.nonce)
            stale.remove(self._keys.wake if node is None else self._keys.owner(node), name)
        if head.status != new.status:
            stale.remove(self._keys.status(new.status), new.run_id)
        if head.reactor != new.reactor:
            stale.remove(self._keys.reactor(new.reactor), new.run_id)
        self._index.change_later(stale)
        claim = Claim(new.run_id, node, head.epoch, new.nonce) if owned and node is not None else None
        return Created(head, created, claim)

    async def load(self, run_id: str, start: int = 0, limit: int | None = None) -> Journal | None:
        """Read the head and the records from `start` on; `None` if there is no such run."""
        run = self._keys.run(run_id)
        if limit == 0:
            start, last = 1, 0
        else:
            last = -1 if limit is None else start + limit - 1
        call = SCRIPTS["load"].call((run.head, run.journal), b"%d" % start, b"%d" % last)
        flat, records = await self._wire.send(run.tag, call, use="bulk")
        stored = read_head(run_id, flat)
        return None if stored is None else Journal(stored.head, records)

    # -- claim and release

    async def claim(self, head: Head, node: str, nonce: str) -> Claim | None:
        """Take the run over, if it has no owner or its owner's lease has expired."""
        keys = self._keys
        dead = head.node or ""
        if dead and await self._is_alive(dead):
            dead = ""
        run, mine = keys.run(head.run_id), entry_name(head.run_id, nonce)
        reply = await self._write(
            Changes().add(keys.owner(node), mine).new(keys.nodes, node),
            run,
            lambda cells, deadline: SCRIPTS["claim"].call(
                run.all() + cells, deadline, b"%d" % head.epoch, head.nonce, node, nonce, dead
            ),
        )
        if reply is None:
            self._index.change_later(Changes().remove(keys.owner(node), mine))
            return None
        before = entry_name(head.run_id, head.nonce)
        done = Changes().remove(keys.wake, before)
        if head.node is not None and before != mine:
            done.remove(keys.owner(head.node), before)
        self._index.change_later(done)
        return Claim(head.run_id, node, reply, nonce)

    async def _is_alive(self, node: str) -> bool:
        exists = pack((b"EXISTS", self._keys.lease(node)))
        return bool(await self._wire.send(self._keys.index_tag, exists))

    async def release(self, claim: Claim, *, retention: float, wake: bool, due: Due) -> bool:
        """Give up a claim; an ended run expires after `retention` again, unless it is retained."""
        run = self._keys.run(claim.run_id)
        turn = Turn(claim, claim.nonce, due, release=True, wake=wake, retention=retention)
        words = (b"%d" % claim.epoch, claim.nonce, repr(retention), b"%d" % wake, due_word(due))
        reply = await self._write(
            turn.before(self._keys, self._clock.now()),
            run,
            lambda cells, deadline: SCRIPTS["release"].call(run.all() + cells, deadline, *words),
        )
        if not isinstance(reply, bytes):
            raise ClaimLost(lost(claim, reply))
        settled = read_settled(reply)
        self._index.change_later(turn.after(self._keys, settled))
        return settled.released

    async def acknowledge(self, run_id: str, retention: float) -> bool:
        """Let a retained run expire after `retention`. `False` if there is no such ended run."""
        run, keys = self._keys.run(run_id), self._keys
        before = Changes().add(keys.expiring, entry_name(run_id), self._clock.now() + retention)
        reply = await self._write(
            before, run, lambda cells, _: SCRIPTS["acknowledge"].call(run.all() + cells, repr(retention))
        )
        after = Changes().remove(keys.expiring, entry_name(run_id))
        if reply is not None and reply[0]:
            expires, status, reactor = (word.decode() for word in reply)
            after.add(keys.expiring, entry_name(run_id, status, reactor), float(expires))
        self._index.change_later(after)
        return reply is not None

    async def _write(
        self, before: Changes, run: RunKeys, call: Callable[[list[bytes], str], bytes], weight: int = 1
    ) -> Any:
        """Write to all keys of a run: again with those of its cells, if the script says that it has some.

        Args:
            before: the index entries that the write needs.
            run: the run's keys.
            call: returns the script's call, for the keys of the cells and the deadline.
            weight: records that it writes.
        """
        reply = await self._index.write(before, run.tag, lambda at: call([], at), weight)
        if _has_cells(reply):
            reply = await self._index.write(before, run.tag, lambda at: call(run.buckets(), at), weight)
        return reply

    # -- append

    async def append(self, commit: Commit) -> Appended:
        """Write one commit. Raises `ClaimLost` or `JournalMismatch`."""
        claim, run = commit.claim, self._keys.run(commit.claim.run_id)
        first = (b"%d" % claim.epoch, claim.nonce, commit.id, b"%d" % commit.expected)
        weight = len(commit.records) or 1
        if is_plain(commit):
            call = SCRIPTS["append"].call(run.packed, *first, NO_MORE, *commit.records)
            reply = await self._wire.send(run.tag, call, weight)
            return Appended(reply) if isinstance(reply, int) else self._appended(commit, None, reply)
        turn = Turn(claim, commit.id, commit.due, commit.release, commit.wake, commit.retention)
        before = turn.before(self._keys, self._clock.now())
        if commit.status is not None:
            before.new(self._keys.status(commit.status), claim.run_id)
        reply = await self._write(
            before, run, lambda cells, at: self._call(commit, run, cells, (*first, at)), weight
        )
        return self._appended(commit, turn, reply)

    def _call(
        self, commit: Commit, run: RunKeys, cells: list[bytes], opening: tuple[bytes | str, ...]
    ) -> bytes:
        *first, deadline = opening
        more: list[bytes | str] = [
            deadline,
            "" if commit.status is None else "=" + commit.status,
            b"" if commit.terminal is None else b"%d" % commit.terminal,
            b"%d" % commit.retain,
            due_word(commit.due),
            b"%d" % commit.release,
            b"%d" % commit.wake,
            repr(commit.retention),
            self._keys.channels,
            REPLY_KEPT,
        ]
        for answer in commit.answers:
            more += (answer.mail_id, answer.reply)
        keys = [*run.all(), *(run.reply(answer.mail_id) for answer in commit.answers), *cells]
        return SCRIPTS["append"].call(keys, *first, b"%d" % len(more), *more, *commit.records)

    def _appended(self, commit: Commit, turn: Turn | None, reply: Any) -> Appended:
        if not isinstance(reply, bytes):
            raise _refusal(commit, reply)
        told = read_told(reply)
        if turn is not None:
            after = turn.after(self._keys, told.settled)
            self._restate(after, commit, told.old, told.created)
            self._index.change_later(after)
        return Appended(told.length, told.settled.released, told.mail)

    def _restate(self, after: Changes, commit: Commit, old: str, created: str) -> None:
        keys, run_id = self._keys, commit.claim.run_id
        if commit.status is not None:
            after.add(keys.status(commit.status), run_id, float(created))
            if old != commit.status:
                after.remove(keys.status(old), run_id)
        for answer in commit.answers:
            after.remove(keys.wake, entry_name(run_id, answer.mail_id))
            after.keep(keys.sent(answer.mail_id), SENT_KEPT)


def is_plain(commit: Commit) -> bool:
    """Tell whether a commit only adds records: most do, and none of the index changes then."""
    return (
        commit.status is None
        and commit.terminal is None
        and commit.due is UNSET
        and not commit.release
        and not commit.retain
        and not commit.answers
    )


def _has_cells(reply: object) -> bool:
    return isinstance(reply, list) and b"cells" in cast("list[object]", reply)[:1]


# -- refusals


def _refusal(commit: Commit, reply: list[Any]) -> ClaimLost | JournalMismatch:
    run_id = commit.claim.run_id
    if reply[0] == b"lost":
        return ClaimLost(lost(commit.claim, reply))
    if reply[0] == b"missing":
        return JournalMismatch(
            f"run {run_id} is not in storage, but its owner wrote {commit.expected} records: "
            "storage lost it, or somebody removed it"
        )
    return JournalMismatch(
        f"run {run_id} has {reply[1]} records in storage, but its owner wrote {commit.expected}: "
        "storage lost some, or another client wrote to it"
    )


def lost(claim: Claim, reply: list[Any]) -> str:
    """Say who has a run, from what a script answered to a writer that does not."""
    owner = f"node {reply[1].decode()}" if reply[1] else "nobody"
    return (
        f"node {claim.node} no longer owns run {claim.run_id} (its claim has epoch {claim.epoch}): "
        f"{owner} does (epoch {int(reply[2])})"
    )
