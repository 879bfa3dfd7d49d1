"""What a map gives: its elements' outcomes, read by page from where they are stored (rule M8)."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from rewound.runtime.outcomes import ElementOutcome

__all__ = ["PAGE", "Page", "Reader", "Results"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

PAGE = 100
"""How many outcomes are read at a time."""


class Page(Struct, Generic[T_co], frozen=True):
    """What a resumable source yields: some rows, and how to go on behind them (rule M4).

    Args:
        items: the rows.
        cursor: what the source is given as `cursor` when it has to go on behind this page; `None` is
            what it is given when it begins. It is stored: plain values, structs or dataclasses.

    Example:
        >>> @source
        ... async def rows(self, ctx: Context, cursor: int | None) -> AsyncIterator[Page[Order]]:
        ...     while orders := await load(after=cursor or 0, limit=500):
        ...         cursor = orders[-1].id
        ...         yield Page(orders, cursor)
    """

    items: Sequence[T_co]
    cursor: Any = None


class Reader(Protocol[T_co]):
    """Where `Results` reads from.

    Attributes:
        total: how many elements there are.
    """

    @property
    def total(self) -> int:
        """Count the elements."""
        ...

    async def page(self, start: int, count: int) -> Sequence[ElementOutcome[T_co]]:
        """Read the outcomes from index `start`, at most `count` of them, in index order, none left out."""
        ...


class Results(Generic[T_co]):
    """The results of a map, in index order, read as they are asked for.

    Whatever the map's size, one page of it is in memory. Iterating gives the values of the elements that
    completed; `outcomes` tells of all of them. With `atomic=False` some may have failed; and where a map
    iterates another one, the elements that this one had no success for are `skipped`, so that an index
    means the same in both.

    Args:
        reader: where the outcomes are.

    Example:
        >>> @charges.collect
        ... async def totals(self, charges: Results[Receipt]) -> Total:
        ...     return Total(sum([receipt.amount async for receipt in charges]), of=len(charges))
    """

    def __init__(self, reader: Reader[T_co]) -> None:
        self._reader = reader
        self._first = 0
        self._kept: Sequence[ElementOutcome[T_co]] = ()

    def __len__(self) -> int:
        return self._reader.total

    def __repr__(self) -> str:
        return f"<Results of {len(self)} elements>"

    async def __aiter__(self) -> AsyncIterator[T_co]:
        async for each in self.successes():
            yield each.value  # type: ignore[misc]  # a success has a value, which may be None

    async def outcome(self, index: int) -> ElementOutcome[T_co]:
        """Read how one element ended.

        Args:
            index: its place, from 0; a negative one counts from the end.

        Raises:
            IndexError: there is no such element.
        """
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"element {index} of {len(self)}")
        page = await self._page(place - place % PAGE)
        return page[place % PAGE]

    async def get(self, index: int) -> T_co:
        """Read the value of one element.

        Args:
            index: its place, from 0; a negative one counts from the end.

        Raises:
            IndexError: there is no such element.
            LookupError: it did not complete; `outcome(index)` tells why.
        """
        found = await self.outcome(index)
        if found.status != "completed":
            why = f": {found.error.type}: {found.error.message}" if found.error else ""
            raise LookupError(f"element {found.index} is {found.status}{why}; outcome({index}) tells more")
        return found.value  # type: ignore[return-value]  # a success has a value, which may be None

    async def outcomes(self) -> AsyncIterator[ElementOutcome[T_co]]:
        """Iterate how each element ended."""
        for first in range(0, len(self), PAGE):
            for each in await self._page(first):
                yield each

    async def successes(self) -> AsyncIterator[ElementOutcome[T_co]]:
        """Iterate the elements that completed."""
        async for each in self.outcomes():
            if each.status == "completed":
                yield each

    async def failures(self) -> AsyncIterator[ElementOutcome[T_co]]:
        """Iterate the elements that failed, and took themselves back."""
        async for each in self.outcomes():
            if each.status == "failed":
                yield each

    async def all(self) -> list[T_co]:
        """Read every value at once, of the elements that completed: as much memory as that takes."""
        return [value async for value in self]

    async def _page(self, first: int) -> Sequence[ElementOutcome[T_co]]:
        """Read a page, unless it is the one at hand: what a map gave does not change."""
        if not self._kept or self._first != first:
            page = await self._reader.page(first, PAGE)
            self._first, self._kept = first, page
        return self._kept
