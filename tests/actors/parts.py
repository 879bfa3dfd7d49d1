"""Actors that the tests share."""

from dataclasses import dataclass, field
from typing import Any

import anyio

from rewound.actors import Actor, Ref
from rewound.errors import RewoundError


class RefusedError(RewoundError):
    """A refusal that an actor gives on purpose."""


class Adder(Actor[int]):
    """Keeps a sum; refuses negative numbers, and crashes at zero."""

    def __init__(self, key: str = "adder") -> None:
        self.key = key
        self.total = 0

    async def receive(self, message: int) -> int:
        """Add."""
        if message < 0:
            raise RefusedError(f"{message} is negative")
        if message == 0:
            raise ValueError("zero crashes")
        self.total += message
        return self.total


@dataclass(frozen=True)
class AskOther:
    """Makes an `Asker` ask another actor."""

    other: Ref[Any]
    message: Any = None


class Asker(Actor[Any]):
    """Answers with its key, or with what the actor says that it is told to ask."""

    def __init__(self, key: str) -> None:
        self.key = key

    async def receive(self, message: Any) -> Any:
        """Ask on, or answer."""
        if isinstance(message, AskOther):
            return await message.other.ask(message.message)
        return self.key


class Blocked(Actor[Any]):
    """Holds each message until its `gate` opens; tells what it did in `log`."""

    def __init__(self, key: str, log: list[Any] | None = None) -> None:
        self.key = key
        self.log: list[Any] = [] if log is None else log
        self.gate = anyio.Event()
        self.entered = anyio.Event()

    async def started(self) -> None:
        """Note the start."""
        self.log.append(f"{self.key} started")

    async def receive(self, message: Any) -> Any:
        """Wait for the gate, then note and return the message."""
        self.entered.set()
        await self.gate.wait()
        self.log.append(message)
        return message

    async def stopped(self) -> None:
        """Note the end."""
        self.log.append(f"{self.key} stopped")


@dataclass
class GivenUp:
    """Collects what a supervisor gives up."""

    keys: list[Any] = field(default_factory=list[Any])
    errors: list[Exception] = field(default_factory=list[Exception])

    def note(self, key: Any, error: Exception) -> None:
        """Serve as `on_give_up`."""
        self.keys.append(key)
        self.errors.append(error)
