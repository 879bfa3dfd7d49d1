"""The rows of a generator, stored page by page before their elements begin (M4)."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeGuard, cast

import anyio
import msgspec
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream
from msgspec import Struct

from rewound.errors import PayloadError
from rewound.runtime.engine.messages import Result
from rewound.runtime.owners.rows import PAGE
from rewound.runtime.owners.spaces import SpaceWriter
from rewound.runtime.results import Page

__all__ = ["SourceRows"]


_NIL = msgspec.Raw(b"\xc0")


class _Head(Struct, array_like=True):
    """How far a source has been read. `cursor`, encoded, goes on behind the last page."""

    read: int = 0
    ended: bool = False
    cursor: msgspec.Raw = _NIL  # a union with `None` would be read as `None` alone


class _Rows(Struct):
    """Rows on their way to storage, encoded."""

    rows: list[msgspec.Raw]
    cursor: msgspec.Raw | None = None


_pages = msgspec.msgpack.Decoder(list[msgspec.Raw])
_heads = msgspec.msgpack.Decoder(_Head)
_plain = msgspec.msgpack.Decoder().decode
_encode = msgspec.msgpack.Encoder().encode


class SourceRows:
    """The rows that a generator yields. Each page is a cell, numbered by its first row.

    Args:
        space: where the pages are.
        encode: makes one row storable.
        encode_cursor: makes a cursor storable.
        decode: reads a stored row.
        failure: says what an exception out of the generator means.
    """

    def __init__(
        self,
        space: SpaceWriter,
        *,
        encode: Callable[[Any], bytes],
        encode_cursor: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
        failure: Callable[[BaseException], Result],
    ) -> None:
        self._space = space
        self._encode = encode
        self._encode_cursor = encode_cursor
        self._decode = decode
        self._failure = failure
        self._head = _Head()
        self._rows: list[msgspec.Raw] = []  # those at hand, from `_first` on
        self._first = 0
        self._asked = 0
        self._wanted = anyio.Event()
        self._broken: Result | None = None

    @property
    def available(self) -> int:
        """How many rows are stored."""
        return self._head.read

    @property
    def total(self) -> int | None:
        """How many rows there are, once the source has ended."""
        return self._head.read if self._head.ended else None

    @property
    def ended(self) -> bool:
        """Whether the source has been read to its end."""
        return self._head.ended

    @property
    def cursor(self) -> Any:
        """What goes on behind the rows that are stored, as plain data; `None` to begin."""
        return _plain(self._head.cursor)

    async def load(self) -> None:
        """Find out how far the source had come."""
        raw = await self._space.open()
        if raw is not None:
            self._head = _heads.decode(raw)

    def want(self) -> None:
        """Ask for more rows: slots are free."""
        self._wanted.set()

    async def read(self, source: AsyncIterator[Any], stored: Callable[[], object]) -> Result | None:
        """Read the source to its end, only as fast as rows are wanted; call `stored` after each page.

        The source runs ahead by one page at most. What has gathered until rows are wanted is stored together.

        Returns:
            Nothing at its end, or what its failure means.
        """
        async with anyio.create_task_group() as tasks:
            send, receive = anyio.create_memory_object_stream[_Rows](PAGE)
            tasks.start_soon(self._pull, source, send)
            async with receive:
                async for rows in receive:
                    await self._wanted.wait()
                    self._wanted = anyio.Event()
                    await self._store(_gathered(rows, receive))
                    stored()
        if self._broken is None:
            await self._write(_Head(self._head.read, ended=True, cursor=self._head.cursor), {})
        return self._broken

    async def item(self, index: int) -> Any:
        """Return a stored row. Raises `PayloadError` if it is gone."""
        if not self._first <= index < self._first + len(self._rows):
            await self._load(index)
        self._asked = index
        return self._decode(bytes(self._rows[index - self._first]))

    async def _load(self, index: int) -> None:
        """Have the rows around one at hand: pages may be short, and a read for each would be slow."""
        count = PAGE if index < self._first else 2 * PAGE
        space = await self._space.look(max(0, index - PAGE + 1), count)
        self._first, self._rows = _around(index, space.cells if space else {})
        if not self._first <= index < self._first + len(self._rows):
            raise PayloadError(f"row {index} of its source is not stored any more")

    async def _pull(self, source: AsyncIterator[Any], send: ObjectSendStream[_Rows]) -> None:
        """Run the user's generator; whatever it raises is its own failure (S8)."""
        async with send:
            try:
                async with aclosing(cast("AsyncGenerator[Any]", source)) as rows:
                    async for item in rows:
                        await send.send(self._encoded(item))
            except BaseException as error:  # noqa: BLE001 - `failure` lets through what must be
                self._broken = self._failure(error)

    def _encoded(self, item: Any) -> _Rows:
        if not _is_page(item):
            return _Rows([msgspec.Raw(self._encode(item))])
        rows = [msgspec.Raw(self._encode(row)) for row in item.items]
        return _Rows(rows, msgspec.Raw(self._encode_cursor(item.cursor)))

    async def _store(self, new: _Rows) -> None:
        first = self._head.read
        cells = {first + low: _encode(new.rows[low : low + PAGE]) for low in range(0, len(new.rows), PAGE)}
        await self._write(_Head(first + len(new.rows), ended=False, cursor=new.cursor or _NIL), cells)
        self._keep(first, new.rows)

    def _keep(self, first: int, rows: list[msgspec.Raw]) -> None:
        """Keep new rows at hand until their elements begin, but never more than a few pages of them."""
        if self._first + len(self._rows) == first:
            begun = max(0, self._asked - self._first)
            self._rows = [*self._rows[begun:], *rows][: 2 * PAGE]
            self._first += begun

    async def _write(self, head: _Head, cells: dict[int, bytes]) -> None:
        await self._space.write(_encode(head), cells)
        self._head = head


def _around(index: int, cells: Mapping[int, bytes]) -> tuple[int, list[msgspec.Raw]]:
    """Join the pages around a row that lie next to each other: where they begin, and their rows."""
    first, rows = 0, list[msgspec.Raw]()
    for number, page in sorted(cells.items()):
        if number != first + len(rows):
            if first + len(rows) > index:
                break
            first, rows = number, []
        rows += _pages.decode(page)
    return first, rows


def _is_page(item: Any) -> TypeGuard[Page[Any]]:
    return isinstance(item, Page)


def _gathered(first: _Rows, receive: MemoryObjectReceiveStream[_Rows]) -> _Rows:
    """Take what is there with a row; the page of a resumable source is taken alone."""
    while first.cursor is None and len(first.rows) < PAGE:
        try:
            first.rows += receive.receive_nowait().rows
        except (anyio.WouldBlock, anyio.EndOfStream):
            break
    return first
