"""Bytes of many rows as one value of a statement."""

__all__ = ["Blobs"]


class Blobs:
    """Bytes that travel together, each known by its place."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> tuple[int, int]:
        """Add bytes; return what `substr` needs to find them."""
        first = self._size + 1
        self._parts.append(data)
        self._size += len(data)
        return first, len(data)

    def joined(self) -> bytes:
        """Return all of them, and a byte more: a part of nothing at all would be NULL, not empty."""
        return b"".join((*self._parts, b"."))
