"""Connections: how each kind of target is reached."""

from typing import Any, cast

from redis.asyncio.connection import AbstractConnection
from redis.asyncio.sentinel import Sentinel

from rewound.errors import StorageConfigError
from rewound.storage.redis.links import Link
from rewound.storage.redis.urls import Address, Target

__all__ = ["check_options", "dial", "find_primary"]

CONNECT_TIMEOUT = 5.0

OURS: dict[str, Any] = {
    "protocol": 2,  # RESP 2 says all we ask, in the fewest words
    "socket_timeout": None,  # a lane times whole batches; a timeout per reply would double their cost
    "socket_connect_timeout": CONNECT_TIMEOUT,
    "driver_info": None,  # saves a round trip of naming the client
}


def check_options(target: Target) -> None:
    """Refuse options that redis-py does not know, before anything is connected."""
    try:
        _connection(target, {})
    except TypeError as error:
        raise StorageConfigError(f"an option for Redis at {target.label} is unknown: {error}") from None


async def dial(target: Target, address: Address | None = None) -> Link:
    """Connect to the target's server, or to one of its nodes."""
    place = {} if address is None else {"host": address[0], "port": address[1]}
    link = _connection(target, place)
    try:
        await link.connect()
    except BaseException:
        await link.disconnect(nowait=True)
        raise
    return link


async def find_primary(target: Target) -> Address:
    """Ask the sentinels for the primary."""
    sentinel: Any = Sentinel  # typed in some versions of redis-py only
    sentinels = sentinel(
        target.seeds,
        sentinel_kwargs={"socket_timeout": CONNECT_TIMEOUT, "protocol": 2, **target.sentinel_options},
    )
    try:
        host, port = await sentinels.discover_master(target.service)
    finally:
        for client in sentinels.sentinels:
            await client.aclose()
    return str(host), int(port)


def _connection(target: Target, place: dict[str, Any]) -> Link:
    kind: type[AbstractConnection] = target.connection
    return cast("Link", kind(**target.options, **place, **OURS))
