"""Requests on their way to the server that has their keys: one server, or the nodes of a cluster."""

import asyncio
from binascii import crc_hqx
from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct
from redis.exceptions import AskError, MovedError

from rewound.storage.redis.dialing import dial, find_primary
from rewound.storage.redis.failures import DISCONNECTED
from rewound.storage.redis.lane import Lane
from rewound.storage.redis.links import Link, ask
from rewound.storage.redis.requests import Request, Use
from rewound.storage.redis.urls import Address, Target

__all__ = ["ClusterWire", "Settings", "Wire", "look_away", "make_wire"]

SLOTS = 16_384
CLOSING = 1.0


class Settings(Struct, frozen=True):
    """How patient a wire is.

    Args:
        patience: seconds that a request is repeated for.
        timeout: seconds that a batch may take.
        replicas: how many must have a batch before it is answered.
    """

    patience: float = 30.0
    timeout: float = 5.0
    replicas: int = 0


class Wire:
    """Sends requests by the hash tag of their keys: here to one server, or the primary of sentinels.

    `ordered` tells whether requests are carried out in the order in which they were sent, whatever
    their tags.
    """

    ordered = True

    def __init__(self, target: Target, settings: Settings) -> None:
        self.target = target
        self.settings = settings
        self._lanes: dict[tuple[Use, Address | None], Lane] = {}
        self._slots: list[Address | None] = [None]
        self._primaries: list[Address | None] = [None]

    def send(self, tag: bytes, packed: bytes, weight: int = 1, use: Use = "commit") -> "asyncio.Future[Any]":
        """Send a command and return its reply's future."""
        request = Request(tag, packed, weight, use, self.settings.patience)
        self._lane_for(request).submit(request)
        return request.future

    def forget(self, tag: bytes, packed: bytes) -> None:
        """Send a command whose reply, or loss, concerns nobody."""
        self.send(tag, packed).add_done_callback(look_away)

    def send_to(self, place: int, packed: bytes) -> "asyncio.Future[Any]":
        """Send a command to one of the `places`."""
        request = Request(b"", packed, 1, "bulk", self.settings.patience)
        self._lane("bulk", self._primaries[place % len(self._primaries)]).submit(request)
        return request.future

    def places(self) -> int:
        """Return how many servers share the keys."""
        return len(self._primaries)

    async def start(self) -> None:
        """Find out what must be known before the first request."""

    async def subscriber(self) -> Link:
        """Return a fresh connection, to listen to channels on."""
        return await self._dial(None)

    async def close(self) -> None:
        """Send what is queued, if it can be sent, and disconnect."""
        await asyncio.gather(*(lane.close(CLOSING) for lane in self._lanes.values()))

    def _lane_for(self, request: Request) -> Lane:
        address = self._slots[crc_hqx(request.tag, 0) % len(self._slots)]
        return self._lane(request.use, address)

    def _lane(self, use: Use, address: Address | None) -> Lane:
        lane = self._lanes.get((use, address))
        if lane is None:
            lane = self._lanes[use, address] = self._open_lane(use, address)
        return lane

    def _open_lane(self, use: Use, address: Address | None) -> Lane:
        replicas = self.settings.replicas if use == "commit" else 0
        timeout = self.settings.timeout
        return Lane(self.target.label, lambda: self._dial(address), timeout, replicas=replicas)

    async def _dial(self, address: Address | None) -> Link:
        if self.target.kind == "sentinel":
            address = await find_primary(self.target)
        return await dial(self.target, address)


class ClusterWire(Wire):
    """The primaries of a cluster, found by asking any node: lanes to each."""

    ordered = False

    def __init__(self, target: Target, settings: Settings) -> None:
        super().__init__(target, settings)
        self._slots = [target.seeds[0]] * SLOTS
        self._primaries = list(target.seeds)
        self._surveying = asyncio.Lock()

    def _open_lane(self, use: Use, address: Address | None) -> Lane:
        return Lane(
            f"{self.target.label} ({address})",
            lambda: self._dial(address),
            self.settings.timeout,
            replicas=self.settings.replicas if use == "commit" else 0,
            redirect=self._redirect,
            reroute=self._reroute,
        )

    def _redirect(self, request: Request, error: AskError) -> None:
        """Send a request where the cluster says its slot is, or, while it moves, is going to be."""
        address: Address = (str(cast("Any", error).host), error.port)
        request.asking = not isinstance(error, MovedError)
        if not request.asking:
            self._slots[error.slot_id] = address
        self._lane(request.use, address).submit(request)

    async def _reroute(self, lane: Lane) -> None:
        """After trouble with a node, see who has its slots now."""
        try:
            await self.start()
        except DISCONNECTED:
            return  # no node could say; the lane tries again itself
        for request in lane.drain():
            request.asking = False
            self._lane_for(request).submit(request)

    async def start(self) -> None:
        """Ask any node which primary has which slots."""
        async with self._surveying:
            await self._survey(list(dict.fromkeys((*self._primaries, *self.target.seeds))))

    async def _survey(self, addresses: Sequence[Address | None]) -> None:
        first, *others = addresses
        try:
            async with asyncio.timeout(self.settings.timeout):
                await self._ask_for_slots(first)
        except DISCONNECTED:
            if not others:
                raise
            await self._survey(others)

    async def _ask_for_slots(self, address: Address | None) -> None:
        link = await self._dial(address)
        try:
            for low, high, primary, *_ in await ask(link, b"CLUSTER", b"SLOTS"):
                # A node that does not know its own name says nothing, and means the one that was asked.
                host = primary[0].decode() if primary[0] else address and address[0]
                place = (str(host), primary[1])
                self._slots[low : high + 1] = [place] * (high + 1 - low)
        finally:
            await link.disconnect()
        self._primaries = list(dict.fromkeys(self._slots))

    async def subscriber(self) -> Link:
        """Connect to any node: a cluster passes messages on to all of them."""
        return await self._dial_any(self._primaries)

    async def _dial_any(self, addresses: Sequence[Address | None]) -> Link:
        first, *others = addresses
        try:
            return await self._dial(first)
        except DISCONNECTED:
            if not others:
                raise
        return await self._dial_any(others)


def make_wire(target: Target, settings: Settings) -> Wire:
    """Return the wire that fits the target."""
    return ClusterWire(target, settings) if target.kind == "cluster" else Wire(target, settings)


def look_away(future: "asyncio.Future[Any]") -> None:
    """Take note of an error, so that asyncio does not report it as overlooked."""
    if not future.cancelled():
        future.exception()
