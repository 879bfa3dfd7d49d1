"""Storage in this process's memory."""

from rewound.storage.memory.storage import MemoryStorage

__all__ = ["MemoryStorage"]
