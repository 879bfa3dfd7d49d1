"""One command on its way: how to send it, who waits for it, and until when."""

import asyncio
from typing import Any, Literal, TypeAlias

from rewound.errors import StorageError

__all__ = ["Request", "Use"]

Use: TypeAlias = Literal["commit", "bulk", "pulse"]
"""Which connection: the one of the commits, the one of long reads, the one of the heartbeat."""


class Request:
    """A command that may be sent again until it is answered, with the effect of once.

    Args:
        tag: hash tag of its keys.
        packed: the command, ready for the wire.
        weight: records that it writes.
        use: which lane it takes.
        patience: seconds until it is given up.
    """

    __slots__ = ("asking", "future", "give_up", "hops", "packed", "patience", "tag", "use", "weight")

    def __init__(self, tag: bytes, packed: bytes, weight: int, use: Use, patience: float) -> None:
        loop = asyncio.get_running_loop()
        self.tag = tag
        self.packed = packed
        self.weight = weight
        self.use: Use = use
        self.patience = patience
        self.future: asyncio.Future[Any] = loop.create_future()
        self.give_up = loop.time() + patience
        self.asking = False
        self.hops = 0

    def answer(self, reply: Any) -> None:
        """Hand the reply to whoever still waits."""
        if not self.future.done():
            self.future.set_result(reply)

    def fail(self, message: str) -> None:
        """Fail whoever still waits."""
        if not self.future.done():
            self.future.set_exception(StorageError(message))
