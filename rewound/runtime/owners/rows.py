"""The rows of a map: what its elements are made of, whatever they come from (M4)."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

import anyio
import msgspec
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream
from msgspec import Struct

from rewound.errors import SourceLost
from rewound.runtime.engine.mapping import decode_cell
from rewound.runtime.owners.spaces import SpaceWriter
from rewound.runtime.results import Page
from rewound.storage.protocol import Storage

__all__ = ["GAP", "ListRows", "MapRows", "Rows", "SourceRows"]

PAGE = 100
"""Rows in one stored page at most."""

GAP: Any = object()
"""Stands for a row that has no element: of another map, an element that did not succeed."""


class Rows(Protocol):
    """Rows by index, as far as they are known."""

    @property
    def available(self) -> int:
        """How many rows can be read."""
        ...

    @property
    def total(self) -> int | None:
        """How many there are, once that is known."""
        ...

    async def item(self, index: int) -> Any:
        """Return a row, or `GAP`."""
        ...


class ListRows:
    """The items of an input or of a step's result."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items
        self.available = len(items)
        self.total: int | None = len(items)

    async def item(self, index: int) -> Any:
        """Return an item of the list."""
        return self._items[index]


class MapRows:
    """The successes of another map; an element that did not succeed leaves a gap, so indexes are kept.

    Args:
        storage: where the other map's elements are.
        run_id: the run.
        space: the other map's space.
        total: how many elements it has.
        value: makes an element's value of its index and records, or `GAP`.
    """

    def __init__(
        self, storage: Storage, run_id: str, space: str, *, total: int, value: Callable[[int, Any], Any]
    ) -> None:
        self._storage = storage
        self._run_id = run_id
        self._space = space
        self._value = value
        self._page: dict[int, bytes] = {}
        self._first = -1
        self.available = total
        self.total: int | None = total

    async def item(self, index: int) -> Any:
        """Return the value of the other map's element."""
        first = index - index % PAGE
        if first != self._first:
            space = await self._storage.space(self._run_id, self._space, first, PAGE)
            self._page, self._first = (space.cells if space else {}), first
        raw = self._page.get(index)
        return GAP if raw is None else self._value(index, decode_cell(raw)[0])


class _SourceHead(Struct, array_like=True):
    """How far a source has been read. `cursor` goes on behind the last page."""

    read: int = 0
    ended: bool = False
    cursor: Any = None


_pages = msgspec.msgpack.Decoder(list[msgspec.Raw])
_heads = msgspec.msgpack.Decoder(_SourceHead)
_encode = msgspec.msgpack.Encoder().encode


class SourceRows:
    """The rows that a generator yields, stored page by page before their elements begin.

    Each page is a cell, numbered by its first row.

    Args:
        space: where the pages are.
        encode: makes one row storable.
        decode: the reverse.
    """

    def __init__(
        self, space: SpaceWriter, *, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]
    ) -> None:
        self._space = space
        self._encode = encode
        self._decode = decode
        self._head = _SourceHead()
        self._page: list[msgspec.Raw] = []
        self._first = 0
        self._wanted = anyio.Event()

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

    async def load(self, *, resumable: bool, label: str) -> Any:
        """Read how far the source had come; return the cursor to go on with.

        Raises:
            SourceLost: rows are stored, there are more, and the generator cannot go on behind them.
        """
        raw = await self._space.open()
        if raw is not None:
            self._head = _heads.decode(raw)
        if self._head.read and not self._head.ended and not resumable:
            raise SourceLost(
                f"{label} was cut off after {self._head.read} rows and cannot be read again from there; "
                "let it take a cursor and yield Page(items, cursor)"
            )
        return self._head.cursor

    def want(self) -> None:
        """Ask for more rows: slots are free."""
        self._wanted.set()

    async def read(self, source: AsyncIterator[Any], stored: Callable[[], object]) -> None:
        """Read the source to its end, only as fast as rows are wanted; call `stored` after each page.

        The source runs ahead by one page at most. What has gathered meanwhile is stored together.
        """
        async with anyio.create_task_group() as tasks:
            send, receive = anyio.create_memory_object_stream[Any](PAGE)
            tasks.start_soon(_pull, source, send)
            async with receive:
                while (gathered := await _gathered(receive)) is not None:
                    await self._wanted.wait()
                    self._wanted = anyio.Event()
                    await self._store(*gathered)
                    stored()
        await self._finish()
        stored()

    async def item(self, index: int) -> Any:
        """Return a stored row."""
        if not self._first <= index < self._first + len(self._page):
            await self._load_page(index)
        return self._decode(bytes(self._page[index - self._first]))

    async def _load_page(self, index: int) -> None:
        low = max(0, index - PAGE + 1)
        space = await self._space.read(low, PAGE)
        first = max(number for number in (space.cells if space else {}) if number <= index)
        self._page, self._first = _pages.decode(space.cells[first] if space else b"\x90"), first

    async def _store(self, rows: list[Any], cursor: Any) -> None:
        encoded = [msgspec.Raw(self._encode(row)) for row in rows]
        first = self._head.read
        cells = {first + low: _encode(encoded[low : low + PAGE]) for low in range(0, len(rows), PAGE)}
        head = _SourceHead(first + len(rows), ended=False, cursor=cursor)
        await self._space.write(_encode(head), cells)
        self._head = head

    async def _finish(self) -> None:
        head = _SourceHead(self._head.read, ended=True, cursor=self._head.cursor)
        await self._space.write(_encode(head), {})
        self._head = head


async def _pull(source: AsyncIterator[Any], send: ObjectSendStream[Any]) -> None:
    async with send:
        async for item in source:
            await send.send(item)


async def _gathered(receive: MemoryObjectReceiveStream[Any]) -> tuple[list[Any], Any] | None:
    """Wait for a row and take what is there with it; a `Page` of a resumable source is taken alone."""
    try:
        item = await receive.receive()
    except anyio.EndOfStream:
        return None
    if isinstance(item, Page):
        page: Page[Any] = item
        return list(page.items), page.cursor
    rows = [item]
    while len(rows) < PAGE:
        try:
            rows.append(receive.receive_nowait())
        except (anyio.WouldBlock, anyio.EndOfStream):
            break
    return rows, None
