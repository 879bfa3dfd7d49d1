"""The mailbox: a bounded queue of mail for one reader, and a lane ahead of it for signals."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from rewound.errors import ActorError, ActorStopped

M = TypeVar("M")


class Mailbox(Generic[M]):
    """A bounded first-in-first-out queue for one reader.

    `put` waits while the mailbox is full; those who wait are served in the order they came. Signals have a
    lane of their own: they never wait, are delivered before ordinary mail, and a signal replaces an unread
    one of the same key.

    Args:
        capacity: the most ordinary messages that may lie unread; signals do not count.
        owner: what error messages call the mailbox's owner.

    Raises:
        ValueError: the capacity is not a positive int.

    Example:
        >>> mailbox = Mailbox[str](capacity=10)
        >>> await mailbox.put("hello")
        >>> await mailbox.drain()
        ['hello']
    """

    __slots__ = ("_arrived", "_capacity", "_closed", "_mail", "_owner", "_signals", "_turns")

    def __init__(self, capacity: int = 1024, *, owner: Hashable = None) -> None:
        if capacity < 1:
            raise ValueError(f"a mailbox holds at least one message; capacity={capacity!r} is not positive")
        self._capacity = capacity
        self._owner = owner
        self._mail: deque[M] = deque()
        self._signals: dict[Hashable, M] = {}
        self._turns: OrderedDict[anyio.Event, None] = OrderedDict()
        self._arrived: anyio.Event | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the mailbox refuses mail."""
        return self._closed

    @property
    def full(self) -> bool:
        """Whether `put` would have to wait."""
        return bool(self._turns) or len(self._mail) >= self._capacity

    def __len__(self) -> int:
        return len(self._mail) + len(self._signals)

    def __iter__(self) -> Iterator[M]:
        """Iterate over the unread messages in the order they would be delivered, taking none."""
        yield from self._signals.values()
        yield from self._mail

    async def put(self, message: M) -> None:
        """Add a message; wait while the mailbox is full.

        Returns without letting other tasks run when there is room. A `put` that is cancelled has not
        added its message.

        Raises:
            ActorStopped: the mailbox is closed, or was closed while this waited.
        """
        if self._closed or self._turns or len(self._mail) >= self._capacity:
            await self._put_in_turn(message)
        else:
            self._mail.append(message)
            if self._arrived is not None:
                self._wake()

    def put_nowait(self, message: M) -> None:
        """Add a message if there is room.

        Raises:
            ActorStopped: the mailbox is closed.
            anyio.WouldBlock: it is full, or others wait for room.
        """
        self._check_open()
        if self._turns or len(self._mail) >= self._capacity:
            raise anyio.WouldBlock
        self._mail.append(message)
        if self._arrived is not None:
            self._wake()

    def signal(self, key: Hashable, message: M) -> None:
        """Add a message ahead of ordinary mail, in place of an unread signal with the same key.

        Never waits, whatever the capacity: so two actors that signal each other cannot lock up.

        Raises:
            ActorStopped: the mailbox is closed.
        """
        self._check_open()
        self._signals[key] = message
        if self._arrived is not None:
            self._wake()

    async def drain(self, limit: int | None = None) -> list[M]:
        """Wait until there is mail, then take all of it: signals first, then mail in order.

        Always lets other tasks run. A `drain` that is cancelled has taken nothing.

        Args:
            limit: the most to take, at least 1; None means all.

        Returns:
            the messages; an empty list when the mailbox is closed.

        Raises:
            ActorError: another task is waiting for this mailbox's mail.
        """
        if self._arrived is not None:
            raise ActorError(f"the mailbox of {self._owner!r} has a reader already; one task may drain it")
        if self._mail or self._signals:
            await checkpoint()
        elif not self._closed:
            await self._arrival()
        taken = self._take_all() if limit is None else self._take(limit)
        self._next_turn()
        return taken

    def close(self) -> list[M]:
        """Refuse further mail and return what was not delivered.

        A waiting `drain` returns an empty list; those who wait in `put` get `ActorStopped`.
        """
        undelivered = self._take_all()
        self._closed = True
        for turn in self._turns:
            turn.set()
        if self._arrived is not None:
            self._wake()
        return undelivered

    def _check_open(self) -> None:
        if self._closed:
            raise ActorStopped(f"actor {self._owner!r} has stopped; it takes no more mail")

    def _wake(self) -> None:
        if self._arrived is not None:
            self._arrived.set()

    async def _arrival(self) -> None:
        self._arrived = anyio.Event()
        try:
            await self._arrived.wait()
        finally:
            self._arrived = None

    def _take_all(self) -> list[M]:
        taken = [*self._signals.values(), *self._mail]
        self._signals.clear()
        self._mail.clear()
        return taken

    def _take(self, limit: int) -> list[M]:
        taken = [self._signals.pop(key) for key in list(islice(self._signals, limit))]
        while self._mail and len(taken) < limit:
            taken.append(self._mail.popleft())
        return taken

    async def _put_in_turn(self, message: M) -> None:
        # Turns are given one by one, not as a bunch: trio runs the tasks of a bunch in random order. A
        # message enters only when its own task runs again, so a cancelled one never leaves it behind.
        self._check_open()
        turn = anyio.Event()
        self._turns[turn] = None
        try:
            await turn.wait()
            self._check_open()
            self._mail.append(message)
            self._wake()
        finally:
            del self._turns[turn]
            self._next_turn()

    def _next_turn(self) -> None:
        if self._turns and len(self._mail) < self._capacity:
            next(iter(self._turns)).set()
