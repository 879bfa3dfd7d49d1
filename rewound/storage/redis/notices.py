"""Notices: one connection that listens to a node's channel, and comes back by itself."""

import asyncio
from collections.abc import Callable
from typing import Any

from rewound.errors import StorageError
from rewound.storage.protocol import Notice
from rewound.storage.redis.failures import DISCONNECTED
from rewound.storage.redis.links import Dial, Link, ask
from rewound.storage.redis.scripts import pack

__all__ = ["Listener"]

RESET = Notice("reset", "")
PING = pack((b"PING",))
DELAYS = (0.0, 0.05, 0.1, 0.2, 0.5)


class Listener:
    """Listens to one channel until it is stopped.

    Args:
        dial: returns a fresh connection.
        channel: to listen to.
        deliver: called with each notice; with a `reset` whenever the connection is new.
        quiet: seconds of silence after which the connection is tried.
    """

    def __init__(
        self, dial: Dial, channel: str, deliver: Callable[[Notice], Any], quiet: float = 15.0
    ) -> None:
        self._dial = dial
        self._channel = channel
        self._deliver = deliver
        self._quiet = quiet
        self._listening = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"rewound: {channel}")

    async def started(self, patience: float) -> None:
        """Wait until it listens.

        Raises:
            StorageError: it does not within `patience` seconds.
        """
        try:
            async with asyncio.timeout(patience):
                await self._listening.wait()
        except TimeoutError:
            raise StorageError(
                f"Redis cannot be listened to for {patience:g} s; check that it runs and can be reached"
            ) from None

    async def stop(self) -> None:
        """Stop listening and disconnect."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        failures = 0
        while True:
            await asyncio.sleep(DELAYS[min(failures, len(DELAYS) - 1)])
            failures += 1
            try:
                async with asyncio.timeout(self._quiet):
                    link = await self._dial()
                try:
                    async with asyncio.timeout(self._quiet):
                        await ask(link, "SUBSCRIBE", self._channel)
                    failures = 0
                    self._listening.set()
                    self._deliver(RESET)
                    await self._listen(link)
                finally:
                    await link.disconnect(nowait=True)
            except DISCONNECTED:
                continue

    async def _listen(self, link: Link) -> None:
        pinged = False
        while True:
            message = await link.read_response(disable_decoding=True, timeout=self._quiet)
            pinged = await self._hear(link, message, pinged=pinged)

    async def _hear(self, link: Link, message: Any, *, pinged: bool) -> bool:
        """Deliver a message. A connection that is silent must answer a ping, or it is given up."""
        if message is not None:
            if message[0] == b"message":
                self._deliver(_notice(message[2].decode()))
            return False
        if pinged:
            raise TimeoutError
        await link.send_packed_command(PING, check_health=False)
        return True


def _notice(text: str) -> Notice:
    kind, _, name = text.partition(" ")
    return Notice(kind, name)  # type: ignore[arg-type]
