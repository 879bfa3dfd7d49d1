"""The rows of a map: what its elements are made of, whatever they come from (M4)."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rewound.errors import PayloadError
from rewound.runtime.engine.mapping import decode_cell
from rewound.storage.protocol import Storage

__all__ = ["GAP", "PAGE", "ListRows", "LostRows", "MapRows", "Rows"]

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


class LostRows:
    """Rows that cannot be had, and why."""

    available = 0
    total: int | None = None

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def item(self, index: int) -> Any:  # noqa: ARG002
        """Raise the reason."""
        raise self._error


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
        """Return the value of the other map's element. Raises `PayloadError` if that is gone."""
        first = index - index % PAGE
        if first != self._first:
            space = await self._storage.space(self._run_id, self._space, first, PAGE)
            self._page, self._first = (space.cells if space else {}), first
        raw = self._page.get(index)
        if raw is None:
            raise PayloadError(f"element {index} of the map it iterates has no record any more")
        return self._value(index, decode_cell(raw)[0])
