"""A sorted list of unique keys: what an index is in memory."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

__all__ = ["Ordered"]

K = TypeVar("K", bound=tuple[Any, ...])


class Ordered(Generic[K]):
    """Keys in ascending order. Adding and removing move memory, not objects: 100,000 keys are fine."""

    def __init__(self) -> None:
        self._keys: list[K] = []

    def add(self, key: K) -> None:
        """Add a key that is not there."""
        insort(self._keys, key)

    def discard(self, key: K) -> None:
        """Remove a key that is there."""
        del self._keys[bisect_left(self._keys, key)]

    def after(self, key: K | None) -> Iterator[K]:
        """Iterate over the keys greater than `key`."""
        start = 0 if key is None else bisect_right(self._keys, key)
        for position in range(start, len(self._keys)):
            yield self._keys[position]

    def before(self, key: K | None) -> Iterator[K]:
        """Iterate over the keys less than `key`, greatest first."""
        stop = len(self._keys) if key is None else bisect_left(self._keys, key)
        for position in range(stop - 1, -1, -1):
            yield self._keys[position]
