"""Reading stored rows: few reads, whatever the pages, and few rows at hand, whatever the map (M4, R8)."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import msgspec
import pytest

from rewound import Page
from rewound.errors import PayloadError
from rewound.runtime.declare import ONCE
from rewound.runtime.owners.attempt import failure_of
from rewound.runtime.owners.source_rows import SourceRows
from rewound.runtime.owners.spaces import SpaceWriter
from rewound.storage import open_storage
from rewound.storage.forward import Forward
from rewound.storage.protocol import Claim, NewRun

T = TypeVar("T")

pytestmark = pytest.mark.anyio


class Reads(Forward):
    """A storage that counts reads of cells."""

    def __init__(self) -> None:
        super().__init__(open_storage("memory://"))
        self.count = 0

    async def _call(self, name: str, operation: Callable[[], Awaitable[T]]) -> T:
        self.count += name == "space"
        return await operation()


class Table:
    """A run whose source's rows are read and stored."""

    def __init__(self, storage: Reads, claim: Claim) -> None:
        self.storage = storage
        self._claim = claim

    def rows(self) -> SourceRows:
        """Return the rows as a new owner has them."""
        return SourceRows(
            SpaceWriter(self.storage, self._claim, "rows"),
            encode=msgspec.msgpack.encode,
            encode_cursor=msgspec.msgpack.encode,
            decode=msgspec.msgpack.decode,
            failure=partial(failure_of, step="rows", attempt=1, retry=ONCE),
        )

    async def store(self, *sizes: int) -> SourceRows:
        """Store pages of these sizes; row `n` is `n`."""
        rows = self.rows()
        await rows.load()
        rows.want()
        assert await rows.read(pages(sizes), rows.want) is None
        return rows


async def pages(sizes: Iterable[int]) -> AsyncIterator[Page[int]]:
    """Yield pages of these sizes."""
    first = 0
    for size in sizes:
        yield Page(range(first, first + size), first + size)
        first += size


@pytest.fixture
async def table(anyio_backend: Any) -> AsyncGenerator[Table]:
    """A run on memory."""
    storage = Reads()
    await storage.open()
    await storage.join("node", 60)
    new = NewRun("run", "Reactor", "running", 1, "f", [b"\x90"], commit="c", nonce="n")
    claim = (await storage.create(new, "node")).claim
    assert claim is not None
    yield Table(storage, claim)
    await storage.close()


@pytest.mark.parametrize("sizes", [[1] * 1000, [7] * 100, [100] * 10, [1000], [3, 250, 1, 1, 500, 99]])
async def test_r8_rows_are_read_many_at_a_time(table: Table, sizes: list[int]) -> None:
    """Forward and back, a read gives many rows, however short or long the pages were."""
    await table.store(*sizes)
    total = sum(sizes)
    for order in (range(total), range(total - 1, -1, -1)):
        rows = table.rows()
        await rows.load()
        before = table.storage.count
        assert [await rows.item(index) for index in order] == list(order)
        assert table.storage.count - before <= total // 50 + 2


async def test_m4_new_rows_are_at_hand(table: Table) -> None:
    """Elements that begin as their rows are stored hardly cost a read, however short the pages are."""
    rows = table.rows()
    await rows.load()
    seen: list[int] = []
    before = table.storage.count

    async def begin() -> AsyncIterator[Page[int]]:
        async for page in pages([4] * 200):
            yield page
            while len(seen) < rows.available:
                seen.append(await rows.item(len(seen)))

    rows.want()
    await rows.read(begin(), rows.want)
    seen += [await rows.item(index) for index in range(len(seen), rows.available)]
    assert seen == list(range(800))
    assert table.storage.count - before <= 4


async def test_m4_a_row_that_is_gone(table: Table) -> None:
    """A row that nobody stored is told, not made up."""
    rows = await table.store(2, 3)
    with pytest.raises(PayloadError, match="row 5 of its source is not stored any more"):
        await rows.item(5)
    assert await rows.item(4) == 4
