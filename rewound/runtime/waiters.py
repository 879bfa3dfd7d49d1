"""Who waits in this process for something that happens to a run, or for a reply.

A waiter is a local event. However many there are, they cost no connection and poll nothing: owners
and the node's one shared channel call `notify`.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from rewound.errors import RuntimeClosed

__all__ = ["Listener", "Waiters"]


class Listener:
    """One waiter on one subject. Set when anything happened since it last looked.

    Args:
        worthwhile: tells whether news is worth waking the waiter for; spares it most steps of a run
            whose end it waits for. Default: all news is.
    """

    __slots__ = ("_error", "_event", "_news", "_worthwhile")

    def __init__(self, worthwhile: Callable[[], bool] | None = None) -> None:
        self._worthwhile = worthwhile
        self._event: anyio.Event | None = None
        self._news = False
        self._error: Exception | None = None

    def notify(self, error: Exception | None = None) -> None:
        """Wake the waiter, now or when it next waits; with an error, that is raised in it."""
        if error is None and self._worthwhile is not None and not self._worthwhile():
            return
        self._news, self._error = True, error or self._error
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Wait until something happened since the previous `wait` returned."""
        if not self._news:
            self._event = anyio.Event()
            try:
                await self._event.wait()
            finally:
                self._event = None
        self._news = False
        if self._error is not None:
            error, self._error = self._error, None
            raise error


class Waiters:
    """Listeners by subject: a run's id or a piece of mail's."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}
        self._closed = False

    @contextmanager
    def listen(self, subject: str, worthwhile: Callable[[], bool] | None = None) -> Generator[Listener]:
        """Listen to a subject for the length of a `with` block; see `Listener`.

        Raises:
            RuntimeClosed: nothing will be heard here any more.
        """
        if self._closed:
            raise _closed(subject)
        listener = Listener(worthwhile)
        self._listeners.setdefault(subject, set()).add(listener)
        try:
            yield listener
        finally:
            others = self._listeners[subject]
            others.discard(listener)
            if not others:
                del self._listeners[subject]

    def notify(self, subject: str) -> None:
        """Wake everybody who listens to the subject."""
        for listener in self._listeners.get(subject, ()):
            listener.notify()

    def fail(self, subject: str, error: Exception) -> None:
        """Raise an error in everybody who listens to the subject."""
        for listener in self._listeners.get(subject, ()):
            listener.notify(error)

    def notify_all(self) -> None:
        """Wake everybody; they look again."""
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.notify()

    def close(self) -> None:
        """Raise `RuntimeClosed` in everybody who waits: nothing will be heard here any more."""
        self._closed = True
        for subject, listeners in self._listeners.items():
            for listener in listeners:
                listener.notify(_closed(subject))


def _closed(subject: str) -> RuntimeClosed:
    return RuntimeClosed(
        f"the runtime is closed, so {subject} cannot be waited for; it is in storage, and goes on where a "
        "runtime is running"
    )
