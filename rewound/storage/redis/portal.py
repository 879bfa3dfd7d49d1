"""Where the backend's loop is: redis-py speaks asyncio only, so trio reaches it through a thread."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import anyio
from anyio import to_thread

from rewound.errors import StorageError

__all__ = ["Host", "current_host"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Host(ABC):
    """Runs the backend's calls for callers in the loop in which it was made."""

    @abstractmethod
    async def start(self) -> None:
        """Prepare."""

    @abstractmethod
    async def stop(self) -> None:
        """Clean up."""

    @abstractmethod
    def run(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> Awaitable[T]:
        """Call a coroutine function in the backend's loop and return its result."""

    @abstractmethod
    def back(self, function: Callable[[T], Any]) -> Callable[[T], Any]:
        """Return a function that the backend's loop may call, and that runs in the caller's."""


class Direct(Host):
    """The caller's loop is the backend's."""

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""

    def run(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> Awaitable[T]:
        """Call it."""
        return function(*args)

    def back(self, function: Callable[[T], Any]) -> Callable[[T], Any]:
        """Return it."""
        return function


class Call:
    """One call on its way through the portal and back."""

    __slots__ = ("args", "cancel", "done", "error", "function", "result")

    def __init__(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.done = anyio.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.cancel: Callable[[], Any] = lambda: None

    def abandon(self) -> None:
        """Cancel it, if it has begun by now; it has: calls begin in the order of their wake-ups."""
        self.cancel()


class Portal(Host):
    """A thread with an asyncio loop, for a caller on trio.

    Calls and answers cross in batches: a thread is woken once for all that came since it last looked.
    """

    def __init__(self) -> None:
        import trio  # noqa: PLC0415  # an extra: who runs on asyncio has none

        self._token = trio.lowlevel.current_trio_token()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rewound redis", daemon=True)
        self._calls: deque[Call] = deque()
        self._answers: deque[Callable[[], Any]] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._woken = False

    async def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    async def stop(self) -> None:
        """End the loop and the thread; calls that are under way fail."""
        with anyio.CancelScope(shield=True):
            self._loop.call_soon_threadsafe(self._end_calls)
            await to_thread.run_sync(self._thread.join)
            self._loop.close()

    async def run(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Call it in the thread; a cancelled caller abandons it there."""
        call = Call(function, args)
        self._calls.append(call)
        if not self._woken:
            # Set after the call is there, and cleared before the thread looks: no call is overlooked.
            self._woken = True
            self._loop.call_soon_threadsafe(self._begin_calls)
        try:
            await call.done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(call.abandon)
            raise
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    def back(self, function: Callable[[T], Any]) -> Callable[[T], Any]:
        """Return a function that hands its argument over to trio."""
        return lambda value: self._hand_back(lambda: function(value))

    # -- in the thread

    def _begin_calls(self) -> None:
        self._woken = False
        while self._calls:
            call = self._calls.popleft()
            task = self._loop.create_task(_coroutine(call))
            call.cancel = task.cancel
            self._tasks.add(task)
            task.add_done_callback(partial(self._end_call, call))

    def _end_call(self, call: Call, task: asyncio.Task[Any]) -> None:
        """Pass on how a call ended; one may be cancelled before its first step."""
        self._tasks.discard(task)
        if task.cancelled():
            call.error = StorageError("the call was abandoned")
        else:
            call.error = task.exception()
            call.result = None if call.error else task.result()
        self._hand_back(call.done.set)

    def _end_calls(self) -> None:
        for task in self._tasks:
            task.cancel()
        ended = self._loop.create_task(_all_ended(list(self._tasks)))
        ended.add_done_callback(lambda _: self._loop.stop())

    def _hand_back(self, answer: Callable[[], Any]) -> None:
        self._answers.append(answer)
        self._token.run_sync_soon(self._deliver, idempotent=True)

    # -- in trio

    def _deliver(self) -> None:
        while self._answers:
            self._answers.popleft()()


async def _coroutine(call: Call) -> Any:
    return await call.function(*call.args)


async def _all_ended(tasks: list[asyncio.Task[Any]]) -> None:
    if tasks:
        await asyncio.wait(tasks)


def current_host() -> Host:
    """Return the host for the running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return Portal()
    return Direct()
