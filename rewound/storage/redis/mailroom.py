"""Mail to a run's owner, its replies, and who watches a run."""

from typing import Any

from rewound.storage.protocol import Head, Mail
from rewound.storage.redis.heads import read_head
from rewound.storage.redis.index import Changes, Index
from rewound.storage.redis.keys import Keys, entry_name
from rewound.storage.redis.scripts import SCRIPTS, pack
from rewound.storage.redis.wire import Wire

__all__ = ["Mailroom"]


class Mailroom:
    """Mail stands in the run's slot; the index knows of each piece until it is answered."""

    def __init__(self, wire: Wire, keys: Keys, index: Index) -> None:
        self._wire = wire
        self._keys = keys
        self._index = index

    async def post(self, run_id: str, mail: Mail) -> Head | None:
        """Store mail for the run's owner and hint at it; `None` if there is no such run."""
        run, keys, name = self._keys.run(run_id), self._keys, entry_name(run_id, mail.id)
        words = (mail.id, mail.sender, mail.body, keys.channels, run_id)
        reply = await self._index.write(
            Changes().add(keys.wake, name).note(keys.sent(mail.id), run_id),
            run.tag,
            lambda deadline: SCRIPTS["post"].call((run.head, run.mail, run.reply(mail.id)), deadline, *words),
        )
        unread = reply is not None and reply[0]
        if not unread:
            self._index.change_later(Changes().remove(keys.wake, name))
        stored = None if reply is None else read_head(run_id, reply[1])
        return None if stored is None else stored.head

    async def mail(self, run_id: str) -> list[Mail]:
        """Read a run's unread mail, oldest first."""
        run = self._keys.run(run_id)
        flat = await self._wire.send(run.tag, pack((b"HGETALL", run.mail)))
        letters = sorted(_read_letter(*pair) for pair in zip(flat[::2], flat[1::2], strict=True))
        return [mail for _, mail in letters]

    async def reply(self, mail_id: str) -> bytes | None:
        """Read the reply to a piece of mail; it is kept for ten minutes."""
        keys = self._keys
        run_id = await self._wire.send(keys.index_tag, pack((b"GET", keys.sent(mail_id))))
        if run_id is None:
            return None
        run = keys.run(run_id.decode())
        reply: bytes | None = await self._wire.send(run.tag, pack((b"GET", run.reply(mail_id))))
        return reply

    async def watch(self, run_id: str, node: str) -> Head | None:
        """Have `changed` notices of this run sent to the node; returns the head as it is now."""
        run, notice = self._keys.run(run_id), f"changed {run_id}"
        call = SCRIPTS["watch"].call((run.head, run.watch), self._keys.channel(node), notice)
        stored = read_head(run_id, await self._wire.send(run.tag, call))
        return None if stored is None else stored.head

    async def unwatch(self, run_id: str, node: str) -> None:
        """End `watch`. Idempotent."""
        run = self._keys.run(run_id)
        call = SCRIPTS["unwatch"].call((run.head, run.watch), self._keys.channel(node))
        await self._wire.send(run.tag, call)


def _read_letter(mail_id: bytes, letter: bytes) -> tuple[int, Any]:
    """Take '<number> <length of sender>:<sender><body>' apart."""
    opening, _, rest = letter.partition(b":")
    number, size = map(int, opening.split())
    return number, Mail(mail_id.decode(), rest[size:], rest[:size].decode())
