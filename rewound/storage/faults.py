"""A storage that fails, hangs or dies on plan, for tests."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

import anyio
from anyio.abc import ObjectReceiveStream
from msgspec import Struct

from rewound.errors import StorageError
from rewound.storage.forward import Forward
from rewound.storage.protocol import Notice, Storage

__all__ = ["Fault", "Faults"]

T = TypeVar("T")
When = Literal["before", "after"]


class Fault(Struct, frozen=True):
    """One fault of a plan.

    Args:
        kind: `fail` raises `StorageError`; `hang` waits for `Faults.proceed` (or cancellation); `crash`
            lets this and every later operation wait for ever, as those of a process that died.
        at: the number of the operation, from 1 on.
        when: `before` it takes effect; or `after`, so that only its answer is lost.
        method: count operations of this name only, such as `append`.
    """

    kind: Literal["fail", "hang", "crash"]
    at: int
    when: When = "before"
    method: str | None = None


class Faults(Forward):
    """Any storage, with faults. `close` always goes through, so that a test can clean up.

    Args:
        inner: the storage that does the work.
        plan: the faults.

    Attributes:
        trace: the name of each operation, in the order of the calls.
        crashed: set when a `crash` has happened.

    Example:
        >>> storage = Faults(MemoryStorage(), [Fault("crash", at=3, when="after", method="append")])
    """

    def __init__(self, inner: Storage, plan: Sequence[Fault] = ()) -> None:
        super().__init__(inner)
        self.plan = list(plan)
        self.trace: list[str] = []
        self.crashed = anyio.Event()
        self._released = anyio.Event()

    def proceed(self) -> None:
        """Let what hangs go on, now and later; a crash stays one."""
        self._released.set()

    async def _call(self, name: str, operation: Callable[[], Awaitable[T]]) -> T:
        self.trace.append(name)
        counts = {None: len(self.trace), name: self.trace.count(name)}
        due = [fault for fault in self.plan if counts.get(fault.method) == fault.at]
        await self._strike(name, due, "before")
        answer = await operation()
        await self._strike(name, due, "after")
        return answer

    async def _strike(self, name: str, due: list[Fault], when: When) -> None:
        kinds = {fault.kind for fault in due if fault.when == when}
        if "crash" in kinds:
            self.crashed.set()
        if self.crashed.is_set():
            await anyio.sleep_forever()
        if "hang" in kinds:
            await self._released.wait()
        if "fail" in kinds:
            raise StorageError(f"planned fault {when} {name}")

    @asynccontextmanager
    async def notices(self, node: str) -> AsyncGenerator[ObjectReceiveStream[Notice], None]:
        """See `Storage.notices`; a node that crashed receives nothing more."""
        await self._call("notices", anyio.lowlevel.checkpoint)
        async with self.inner.notices(node) as stream:
            yield _Cut(stream, self.crashed)


class _Cut(ObjectReceiveStream[Notice]):
    """A stream that falls silent at a crash."""

    def __init__(self, inner: ObjectReceiveStream[Notice], crashed: anyio.Event) -> None:
        self._inner, self._crashed = inner, crashed

    async def receive(self) -> Notice:
        """Receive from the inner stream while the process lives."""
        notice = await self._inner.receive()
        if self._crashed.is_set():
            await anyio.sleep_forever()
        return notice

    async def aclose(self) -> None:
        """Close the inner stream."""
        await self._inner.aclose()
