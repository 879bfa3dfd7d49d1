"""Stored bytes through a hook, and a limit on their size (A10)."""

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from rewound.errors import PayloadTooLarge, StorageError
from rewound.storage.forward import Forward
from rewound.storage.protocol import (
    Answer,
    Appended,
    Cells,
    Commit,
    Created,
    Head,
    Journal,
    Mail,
    NewRun,
    Space,
    Storage,
)

__all__ = ["Encoded", "PayloadCodec"]

MAX_RECORD = 2 << 20


class PayloadCodec(Protocol):
    """Turns what is stored into other bytes and back: compression, encryption.

    Example:
        >>> class Zipped:
        ...     def encode(self, plain: bytes) -> bytes:
        ...         return zlib.compress(plain)
        ...
        ...     def decode(self, stored: bytes) -> bytes:
        ...         return zlib.decompress(stored)
    """

    def encode(self, plain: bytes, /) -> bytes:
        """Return what to store."""
        ...

    def decode(self, stored: bytes, /) -> bytes:
        """Return what `encode` was given; raise anything if `stored` cannot come from it."""
        ...


class Encoded(Forward):
    """Any storage, with records, cells, mail and replies encoded on the way in and decoded on the way out.

    Heads stay readable: storage lists and compares them.

    Args:
        inner: the storage that does the work.
        codec: the hook; `None` stores bytes as they are.
        max_record: the most bytes that one record, cell, header, mail or reply may have as stored. Default
            2 MiB, so that a result just below `max_payload` (1 MiB) can be stored with what is around it.
    """

    def __init__(
        self, inner: Storage, codec: PayloadCodec | None = None, max_record: int = MAX_RECORD
    ) -> None:
        super().__init__(inner)
        self._codec, self._max_record = codec, max_record

    async def create(self, new: NewRun, node: str | None) -> Created:
        """See `Storage.create`.

        Raises:
            PayloadTooLarge: a record is larger than `max_record`; nothing was stored.
        """
        records = self._encode_all(new.records, new.run_id)
        return await super().create(replace(new, records=records), node)

    async def append(self, commit: Commit) -> Appended:
        """See `Storage.append`.

        Raises:
            PayloadTooLarge: a record or reply is larger than `max_record`; nothing was stored.
        """
        run_id = commit.claim.run_id
        records = self._encode_all(commit.records, run_id)
        answers = [Answer(answer.mail_id, self._encode(answer.reply, run_id)) for answer in commit.answers]
        if self._codec is not None:
            commit = replace(commit, records=records, answers=answers)
        return await super().append(commit)

    async def load(self, run_id: str, start: int = 0, limit: int | None = None) -> Journal | None:
        """See `Storage.load`.

        Raises:
            StorageError: the codec cannot decode a record.
        """
        journal = await super().load(run_id, start, limit)
        if journal is None:
            return None
        return Journal(journal.head, [self._decode(record, f"run {run_id}") for record in journal.records])

    async def put(self, cells: Cells) -> int:
        """See `Storage.put`.

        Raises:
            PayloadTooLarge: a cell or the header is larger than `max_record`; nothing was stored.
        """
        run_id = cells.claim.run_id
        header = None if cells.header is None else self._encode(cells.header, run_id)
        stored = {number: self._encode(cell, run_id) for number, cell in cells.cells.items()}
        if self._codec is not None:
            cells = replace(cells, cells=stored, header=header)
        return await super().put(cells)

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """See `Storage.space`.

        Raises:
            StorageError: the codec cannot decode the header or a cell.
        """
        page = await super().space(run_id, space, start, count)
        if page is None:
            return None
        what = f"the space {space!r} of run {run_id}"
        header = page.header and self._decode(page.header, what)
        cells = {number: self._decode(cell, what) for number, cell in page.cells.items()}
        return Space(page.version, header, cells)

    async def post(self, run_id: str, mail: Mail) -> Head | None:
        """See `Storage.post`.

        Raises:
            PayloadTooLarge: the body is larger than `max_record`; nothing was stored.
        """
        return await super().post(run_id, replace(mail, body=self._encode(mail.body, run_id)))

    async def mail(self, run_id: str) -> list[Mail]:
        """See `Storage.mail`.

        Raises:
            StorageError: the codec cannot decode a body.
        """
        unread = await super().mail(run_id)
        return [replace(mail, body=self._decode(mail.body, f"mail to run {run_id}")) for mail in unread]

    async def reply(self, mail_id: str) -> bytes | None:
        """See `Storage.reply`.

        Raises:
            StorageError: the codec cannot decode the reply.
        """
        stored = await super().reply(mail_id)
        return None if stored is None else self._decode(stored, f"the reply to mail {mail_id}")

    def _encode_all(self, records: Sequence[bytes], run_id: str) -> list[bytes]:
        return [self._encode(record, run_id) for record in records]

    def _encode(self, plain: bytes, run_id: str) -> bytes:
        stored = plain if self._codec is None else self._codec.encode(plain)
        if len(stored) > self._max_record:
            raise PayloadTooLarge(
                f"run {run_id}: a payload of {len(stored)} bytes is larger than max_payload "
                f"({self._max_record}); store a reference to the data instead, or raise the limit"
            )
        return stored

    def _decode(self, stored: bytes, what: str) -> bytes:
        if self._codec is None:
            return stored
        try:
            return self._codec.decode(stored)
        except Exception as error:
            raise StorageError(
                f"{what}: the payload codec cannot decode what is stored ({error!r}); "
                "use the codec and the key with which it was written"
            ) from error
