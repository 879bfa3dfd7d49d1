"""The backend as it stands in an asyncio loop: everything that holds a connection."""

import asyncio
from collections.abc import Callable
from typing import Any

from redis.exceptions import AuthenticationError, ResponseError

from rewound.errors import StorageConfigError, StorageError
from rewound.storage.protocol import Check, Notice
from rewound.storage.redis.attention import Sweeper
from rewound.storage.redis.checks import Facts, examine, read_facts
from rewound.storage.redis.dialing import check_options
from rewound.storage.redis.failures import DISCONNECTED, Remedy, remedy_for
from rewound.storage.redis.index import Index, ServerClock
from rewound.storage.redis.keys import Keys
from rewound.storage.redis.leases import Leases
from rewound.storage.redis.links import ask
from rewound.storage.redis.listing import Listing
from rewound.storage.redis.mailroom import Mailroom
from rewound.storage.redis.notices import Listener
from rewound.storage.redis.runs import Runs
from rewound.storage.redis.scripts import pack
from rewound.storage.redis.spaces import Spaces
from rewound.storage.redis.upkeep import Upkeep
from rewound.storage.redis.urls import Target
from rewound.storage.redis.wire import Settings, make_wire

__all__ = ["Backend"]

RETRY = 0.2
BEST_FIRST = ("ok", "warn", "fail")


class Backend:
    """One wire, and what is done over it; used in one asyncio loop, and made anywhere."""

    def __init__(self, target: Target, keys: Keys, settings: Settings) -> None:
        self._target = target
        self.keys = keys
        self._settings = settings
        clock = ServerClock()
        self.wire = wire = make_wire(target, settings)
        self.clock = clock
        index = Index(wire, keys, clock)
        self.leases = Leases(wire, keys, clock)
        self.runs = Runs(wire, keys, index, clock)
        self.spaces = Spaces(wire, keys)
        self.mailroom = Mailroom(wire, keys, index)
        self.sweeper = Sweeper(wire, keys, index, clock)
        self.listing = Listing(wire, keys, index, clock)
        self.upkeep = Upkeep(wire, keys, index, clock)
        self._listeners: set[Listener] = set()

    async def open(self) -> None:
        """Connect, read the clock, and refuse an unfit server."""
        check_options(self._target)
        await self._reach()
        await self.leases.now()
        findings = [check for facts in await self._facts(ask_settings=False) for check in examine(facts)]
        for check in findings:
            if check.level == "fail":
                raise StorageConfigError(f"Redis at {self._target.label}: {check.message}")

    async def _reach(self) -> None:
        """Wait for a server that is about to start; tell one that refuses this client at once."""
        label, patience = self._target.label, self._settings.patience
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while True:
            try:
                async with asyncio.timeout(self._settings.timeout):
                    await self._knock()
            except DISCONNECTED as error:
                if _is_final(error):
                    raise StorageConfigError(f"Redis at {label} refuses this client: {error}") from error
                if loop.time() > deadline:
                    raise StorageError(
                        f"Redis at {label} could not be reached for {patience:g} s ({error}); "
                        "check that it runs"
                    ) from error
            else:
                return
            await asyncio.sleep(min(RETRY, patience))

    async def _knock(self) -> None:
        await self.wire.start()
        link = await self.wire.subscriber()
        try:
            await ask(link, "PING")
        finally:
            await link.disconnect()

    async def close(self) -> None:
        """Flush and disconnect."""
        for listener in list(self._listeners):
            await self.stop_listening(listener)
        await self.wire.close()

    async def identity(self) -> str:
        """Return the servers' run ids: a restart or a failover changes them."""
        facts = await self._facts(ask_settings=False)
        return ",".join(sorted(each.info.get("run_id", "") for each in facts))

    async def checks(self) -> list[Check]:
        """Examine the server's settings; of several servers, report the worst finding of each kind."""
        worst: dict[str, Check] = {}
        for facts in await self._facts(ask_settings=True):
            for check in examine(facts):
                known = worst.setdefault(check.name, check)
                if BEST_FIRST.index(check.level) > BEST_FIRST.index(known.level):
                    worst[check.name] = check
        return list(worst.values())

    async def _facts(self, *, ask_settings: bool) -> list[Facts]:
        places = range(self.wire.places())
        return list(
            await asyncio.gather(*(self._facts_of(place, ask_settings=ask_settings) for place in places))
        )

    async def _facts_of(self, place: int, *, ask_settings: bool) -> Facts:
        info = await self.wire.send_to(place, pack((b"INFO",)))
        seconds, micros = await self.wire.send_to(place, pack((b"TIME",)))
        settings: list[bytes] | None = None
        if ask_settings:
            settings = await self._settings_of(place)
        return read_facts(info, settings, int(seconds) + int(micros) / 1e6)

    async def _settings_of(self, place: int) -> list[bytes] | None:
        """Ask for settings one by one, as Redis 6 wants it; managed servers may refuse."""
        found: list[bytes] = []
        try:
            for name in ("save", "appendfsync"):
                found += await self.wire.send_to(place, pack(("CONFIG", "GET", name)))
        except StorageError:
            return None
        return found

    async def listen(self, node: str, deliver: Callable[[Notice], Any]) -> Listener:
        """Listen to a node's channel; `deliver` is called with each notice."""
        listener = Listener(self.wire.subscriber, self.keys.channel(node), deliver)
        # A caller that is cancelled in the very moment of the answer never gets it: `close` stops it then.
        self._listeners.add(listener)
        try:
            await listener.started(self._settings.patience)
        except BaseException:
            await self.stop_listening(listener)
            raise
        return listener

    async def stop_listening(self, listener: Listener) -> None:
        """End `listen`."""
        self._listeners.discard(listener)
        await listener.stop()


def _is_final(error: Exception) -> bool:
    return isinstance(error, AuthenticationError) or (
        isinstance(error, ResponseError) and remedy_for(error) is Remedy.REFUSE
    )
