"""Tasks that run bodies one after another: a step need not cost a task of its own."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context, copy_context

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

__all__ = ["Hands"]

Job = Callable[[], Awaitable[None]]


class Hands:
    """Runs each job at once, in a task that runs no other job meanwhile.

    A task that has done its job waits for another one, because starting a task costs several times what
    waking one does, and most runs have one step in flight at a time. A job that has set a context
    variable retires its task: what a body sets is not seen by the next.

    Args:
        tasks: where the tasks are started.
    """

    __slots__ = ("_idle", "_tasks")

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._idle: list[_Hand] = []

    def do(self, job: Job) -> None:
        """Start a job; its exceptions are the task group's."""
        if self._idle:
            self._idle.pop().call(job)
        else:
            self._tasks.start_soon(self._work, job)

    def dismiss(self) -> None:
        """End the tasks that wait for a job."""
        while self._idle:
            self._idle.pop().call(None)

    async def _work(self, first: Job) -> None:
        job: Job | None = first
        task, context = anyio.get_current_task(), copy_context()
        while job is not None:
            await job()
            if task.has_pending_cancellation():
                await _take_in_cancellation()
                return
            if not _same(context, copy_context()):
                return
            hand = _Hand()
            self._idle.append(hand)
            await hand.called.wait()
            job = hand.job


class _Hand:
    """A task that waits for a job."""

    __slots__ = ("called", "job")

    def __init__(self) -> None:
        self.called = anyio.Event()
        self.job: Job | None = None

    def call(self, job: Job | None) -> None:
        self.job = job
        self.called.set()


async def _take_in_cancellation() -> None:
    """Take in that a job, or user code around it, has cancelled this task.

    A task that returned with a cancellation pending would count as cancelled, and end its task group.
    """
    with suppress(anyio.get_cancelled_exc_class()):
        await checkpoint()


def _same(one: Context, other: Context) -> bool:
    try:
        return one == other
    except Exception:  # noqa: BLE001 - values that cannot be compared are different
        return False
