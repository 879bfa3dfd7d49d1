"""A task that outlives the task that started it. The only module here that knows the event loops apart."""

import asyncio
import contextvars
import math
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskStatus

from rewound.actors.crashes import sift


def on_trio() -> bool:
    """Return whether the current task is trio's."""
    # A program that has not imported trio does not run on it.
    trio: Any = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


def scope_cancelled() -> bool:
    """Return whether a cancel scope around the current task is cancelled."""
    return anyio.current_effective_deadline() == -math.inf


def cancel_requested() -> bool:
    """Return whether somebody has cancelled the current task, by a cancel scope or `Task.cancel`."""
    if scope_cancelled():
        return True
    if on_trio():
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class HostTask:
    """Runs an async function in a task of its own, with no task group around it.

    A task group must be left in the task that entered it. Lifespans and test fixtures enter and leave in
    different tasks; so what they hold lives in the host task, which enters and leaves by itself. The
    function sees a copy of the context variables of `start`'s caller.

    Example:
        >>> async def serve(status):
        ...     async with Supervisor() as supervisor:
        ...         status.started(supervisor)
        ...         await please_stop.wait()
        >>> host = HostTask()
        >>> supervisor = await host.start(serve)
        >>> please_stop.set()
        >>> await host.stop()
    """

    def __init__(self) -> None:
        self._scope = anyio.CancelScope()
        self._reported = anyio.Event()
        self._ended = anyio.Event()
        self._value: Any = None
        self._running = False
        self._error: BaseException | None = None
        self._task: object = None  # asyncio itself holds tasks weakly

    async def start(self, function: Callable[[TaskStatus[Any]], Awaitable[object]]) -> Any:
        """Start the function and wait until it calls `started` on the status it is given.

        Args:
            function: what to run. It is told to stop by means of its own, or by `cancel`.

        Returns:
            the value given to `started`.

        Raises:
            RuntimeError: this host was used before, or the function returned without `started`.
            Exception: what the function raised before `started`.
        """
        if self._task is not None:
            raise RuntimeError("a HostTask starts one function; make another HostTask for another")
        self._spawn(function)
        try:
            await self._reported.wait()
        except BaseException:
            self.cancel()
            with anyio.CancelScope(shield=True):
                await self._ended.wait()
            raise
        if not self._running:
            self._raise_error()
            raise RuntimeError(f"{function!r} ended without a call of started()")
        return self._value

    def started(self, value: Any = None) -> None:
        """Report that the function has started; it calls this once, when it is ready."""
        self._value = value
        self._running = True
        self._reported.set()

    def cancel(self) -> None:
        """Cancel the function; `stop` waits for its end."""
        self._scope.cancel()

    async def stop(self) -> None:
        """Wait until the function has ended; any task may call this, any number of times.

        It does not make the function end: tell it to beforehand, or call `cancel`.

        Raises:
            RuntimeError: nothing was started.
            BaseException: what the function raised after `started`.
        """
        if self._task is None:
            raise RuntimeError("nothing was started in this HostTask; call start() first")
        await self._ended.wait()
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _spawn(self, function: Callable[[TaskStatus[Any]], Awaitable[object]]) -> None:
        context = contextvars.copy_context()
        if on_trio():
            import trio  # noqa: PLC0415 - an optional dependency, present where it runs

            self._task = trio.lowlevel.spawn_system_task(self._host, function, context=context)
        else:
            self._task = asyncio.create_task(self._host(function), context=context)

    async def _host(self, function: Callable[[TaskStatus[Any]], Awaitable[object]]) -> None:
        try:
            with self._scope:
                await function(self)
        except BaseException as error:  # noqa: BLE001 - kept for `stop`
            # What passed here would be an internal error to trio. A cancellation from outside (the loop is
            # being closed) wants this task to end, and it does.
            requested = cancel_requested()
            crash, through = sift(error, anyio.get_cancelled_exc_class(), requested=requested)
            self._error = crash or (None if requested else through)
        finally:
            self._reported.set()
            self._ended.set()
