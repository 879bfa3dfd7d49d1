"""The way from a node to the storage of a sweep: cut at one operation, or bringing a late one."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import anyio

from rewound import RewoundError, StorageError
from rewound.storage import Claim, Fault, Faults, MemoryStorage

__all__ = ["WRITES", "Late", "Link"]

T = TypeVar("T")

WRITES = frozenset({"append", "put", "create", "claim", "release", "renew", "join", "leave", "post"})
"""The operations that change what is stored."""


class Late:
    """An operation of a dead node that is still on its way.

    Attributes:
        taken: it arrived after a takeover and was carried out all the same.
    """

    def __init__(self, name: str, operation: Callable[[], Awaitable[Any]]) -> None:
        self.name = name
        self.taken = False
        self._operation = operation

    async def arrive(self) -> None:
        """Reach the storage now."""
        try:
            await self._operation()
        except RewoundError:
            return
        self.taken = self.name in ("append", "put")


class Link(Faults):
    """Faults that can also keep an operation back, and let one that another link kept back arrive.

    Args:
        inner: the storage.
        plan: the faults.
        hold: keep this operation back, and crash.
        late: arrives just before the first write that follows a takeover.

    Attributes:
        held: what was kept back.
        late: what has not arrived.
    """

    def __init__(
        self, inner: MemoryStorage, plan: Sequence[Fault] = (), *, hold: int = 0, late: Late | None = None
    ) -> None:
        super().__init__(inner, plan)
        self.held: Late | None = None
        self.late = late
        self._hold = hold
        self._took_over = False
        self._buried = False
        self._waiting: set[anyio.CancelScope] = set()

    def bury(self) -> None:
        """Let nobody wait, now or later, for what a crash left without an answer."""
        self._buried = True
        for scope in self._waiting:
            scope.cancel()

    async def _call(self, name: str, operation: Callable[[], Awaitable[T]]) -> T:
        if len(self.trace) + 1 == self._hold:
            self.held = Late(name, operation)
            self.crashed.set()
        elif self.late is not None and self._took_over and name in ("append", "put"):
            late, self.late = self.late, None
            await late.arrive()
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            if self._buried:
                scope.cancel()
            try:
                answer = await super()._call(name, operation)
            finally:
                self._waiting.discard(scope)
            self._took_over = self._took_over or (name == "claim" and isinstance(answer, Claim))
            return answer
        raise StorageError(f"the process died at {name}")
