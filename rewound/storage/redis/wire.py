"""Requests on their way to the server that has their keys: one server, or the nodes of a cluster."""

import asyncio
from abc import ABC, abstractmethod
from binascii import crc_hqx
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from redis.asyncio import Connection
from redis.exceptions import AskError, MovedError

from rewound.storage.redis.dialing import dial, find_primary
from rewound.storage.redis.failures import DISCONNECTED
from rewound.storage.redis.lane import Lane, ask
from rewound.storage.redis.requests import Request
from rewound.storage.redis.urls import Address, Target

__all__ = ["Settings", "Use", "Wire", "make_wire"]

Use = Literal["commit", "bulk", "pulse"]
"""Which connection: the one of the commits, the one of long reads, the one of the heartbeat."""

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


class Wire(ABC):
    """Sends requests by the hash tag of their keys.

    `ordered` tells whether requests are carried out in the order in which they were sent, whatever
    their tags.
    """

    ordered = True

    def __init__(self, target: Target, settings: Settings) -> None:
        self.target = target
        self.settings = settings

    def send(self, tag: bytes, packed: bytes, weight: int = 1, use: Use = "commit") -> "asyncio.Future[Any]":
        """Send a command and return its reply's future."""
        request = Request(tag, packed, weight, use, self.settings.patience)
        self.lane_for(tag, use).submit(request)
        return request.future

    def forget(self, tag: bytes, packed: bytes) -> None:
        """Send a command whose reply, or loss, concerns nobody."""
        self.send(tag, packed).add_done_callback(_look_away)

    def send_to(self, place: int, packed: bytes) -> "asyncio.Future[Any]":
        """Send a command to one of the `places`."""
        request = Request(b"", packed, 1, "bulk", self.settings.patience)
        self.lane_at(place).submit(request)
        return request.future

    @abstractmethod
    def lane_for(self, tag: bytes, use: Use) -> Lane:
        """Return the lane to the server that has a hash tag."""

    @abstractmethod
    def lane_at(self, place: int) -> Lane:
        """Return the lane for long reads from one of the servers."""

    @abstractmethod
    def places(self) -> int:
        """Return how many servers there are."""

    @abstractmethod
    async def start(self) -> None:
        """Find out what must be known before the first request."""

    @abstractmethod
    async def subscriber(self) -> Connection:
        """Return a fresh connection to listen to channels on."""

    @abstractmethod
    async def close(self) -> None:
        """Send what is queued, if it can be sent, and disconnect."""


class SingleWire(Wire):
    """One server, or the primary that sentinels know: a lane for each use."""

    def __init__(self, target: Target, settings: Settings) -> None:
        super().__init__(target, settings)
        self._lanes: dict[Use, Lane] = {}

    def lane_for(self, tag: bytes, use: Use) -> Lane:
        """Return the lane of the use."""
        lane = self._lanes.get(use)
        if lane is None:
            timeout, replicas = self.settings.timeout, self.settings.replicas if use == "commit" else 0
            lane = Lane(self.target.label, self.subscriber, timeout, replicas=replicas)
            self._lanes[use] = lane
        return lane

    def lane_at(self, place: int) -> Lane:
        """Return the lane for long reads."""
        return self.lane_for(b"", "bulk")

    def places(self) -> int:
        """Return 1."""
        return 1

    async def start(self) -> None:
        """Do nothing: the lanes connect when they have something to send."""

    async def subscriber(self) -> Connection:
        """Connect to the server, or to who is the primary now."""
        address = await find_primary(self.target) if self.target.kind == "sentinel" else None
        return await dial(self.target, address)

    async def close(self) -> None:
        """Close the lanes together."""
        await asyncio.gather(*(lane.close(CLOSING) for lane in self._lanes.values()))


class ClusterWire(Wire):
    """The primaries of a cluster, found by asking any node: a lane for each use and primary."""

    ordered = False

    def __init__(self, target: Target, settings: Settings) -> None:
        super().__init__(target, settings)
        self._lanes: dict[tuple[Use, Address], Lane] = {}
        self._slots: list[Address] = [target.seeds[0]] * SLOTS
        self._primaries: list[Address] = list(target.seeds)
        self._surveying = asyncio.Lock()

    def lane_for(self, tag: bytes, use: Use) -> Lane:
        """Return the lane to the node that has the tag's slot."""
        return self._lane(use, self._slots[crc_hqx(tag, 0) % SLOTS])

    def lane_at(self, place: int) -> Lane:
        """Return the lane to one of the primaries."""
        return self._lane("bulk", self._primaries[place % len(self._primaries)])

    def places(self) -> int:
        """Return the number of primaries."""
        return len(self._primaries)

    def _lane(self, use: Use, address: Address) -> Lane:
        lane = self._lanes.get((use, address))
        if lane is None:
            lane = Lane(
                f"{address[0]}:{address[1]}",
                lambda: dial(self.target, address),
                self.settings.timeout,
                replicas=self.settings.replicas if use == "commit" else 0,
                redirect=self._redirect,
                reroute=self._reroute,
            )
            self._lanes[use, address] = lane
        return lane

    def _redirect(self, request: Request, error: AskError) -> None:
        address = (error.host or self._primaries[0][0], error.port)
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
            self.lane_for(request.tag, request.use).submit(request)

    async def start(self) -> None:
        """Ask any node which primary has which slots."""
        async with self._surveying:
            for address in dict.fromkeys((*self._primaries, *self.target.seeds)):
                try:
                    async with asyncio.timeout(self.settings.timeout):
                        slots = await self._ask_for_slots(address)
                except DISCONNECTED as error:
                    problem: Exception = error
                else:
                    self._learn(slots, address)
                    return
            raise problem

    async def _ask_for_slots(self, address: Address) -> Sequence[Any]:
        link = await dial(self.target, address)
        try:
            slots: Sequence[Any] = await ask(link, b"CLUSTER", b"SLOTS")
        finally:
            await link.disconnect()
        return slots

    def _learn(self, slots: Sequence[Any], asked: Address) -> None:
        for low, high, primary, *_ in slots:
            address = (primary[0].decode() if primary[0] else asked[0], primary[1])
            self._slots[low : high + 1] = [address] * (high + 1 - low)
        self._primaries = sorted(set(self._slots))

    async def subscriber(self) -> Connection:
        """Connect to any node: a cluster passes messages on to all of them."""
        for address in self._primaries[:-1]:
            try:
                return await dial(self.target, address)
            except DISCONNECTED:
                continue
        return await dial(self.target, self._primaries[-1])

    async def close(self) -> None:
        """Close the lanes together."""
        await asyncio.gather(*(lane.close(CLOSING) for lane in self._lanes.values()))


def make_wire(target: Target, settings: Settings) -> Wire:
    """Return the wire that fits the target."""
    return ClusterWire(target, settings) if target.kind == "cluster" else SingleWire(target, settings)


def _look_away(future: "asyncio.Future[Any]") -> None:
    """Take note of an error, so that asyncio does not report it as overlooked."""
    if not future.cancelled():
        future.exception()
