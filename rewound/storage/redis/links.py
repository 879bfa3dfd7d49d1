"""One connection: what is used of redis-py's, and the two ways to talk over it."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from redis.exceptions import ResponseError

from rewound.storage.redis.scripts import load_commands, pack

__all__ = ["Dial", "Link", "ask", "read", "teach"]


class Link(Protocol):
    """A connection of redis-py, in the asyncio loop. Whatever fails in it disconnects it."""

    async def connect(self) -> None:
        """Connect and log in."""
        ...

    async def disconnect(self, *, nowait: bool = False) -> None:
        """Disconnect; `nowait` does not wait for the transport."""
        ...

    async def send_packed_command(self, command: bytes, *, check_health: bool = True) -> None:
        """Send bytes."""
        ...

    async def read_response(
        self,
        *,
        disable_decoding: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109  # redis-py's name
    ) -> Any:
        """Read one reply; `None` when `timeout` seconds are over. Raises an error reply."""
        ...


Dial: TypeAlias = Callable[[], Awaitable[Link]]
"""Returns a connection that is ready for commands."""


async def ask(link: Link, *words: bytes | str) -> Any:
    """Send one command on a connection of one's own; an error reply is raised."""
    await link.send_packed_command(pack(words), check_health=False)
    return await link.read_response(disable_decoding=True)


async def read(link: Link) -> Any:
    """Read one reply; an error reply is returned."""
    try:
        return await link.read_response(disable_decoding=True)
    except ResponseError as error:
        return error


async def teach(link: Link) -> None:
    """Teach the server every script."""
    commands = load_commands()
    await link.send_packed_command(b"".join(commands), check_health=False)
    for _ in commands:
        await read(link)
