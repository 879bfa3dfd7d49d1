"""Short ways of the Redis tests."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread

from rewound.storage.redis import RedisStorage
from tests.servers import Server
from tests.storage.redis_load import Proxy
from tests.storage.redis_stores import new_prefix

__all__ = ["connections", "in_thread", "lose_index", "opened", "proxied"]


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncGenerator[RedisStorage, None]:
    """Open a storage on keys of its own for the length of a block."""
    options.setdefault("prefix", new_prefix())
    storage = RedisStorage(url, **options)
    await storage.open()
    try:
        yield storage
    finally:
        await storage.close()


@asynccontextmanager
async def proxied(server: Server, **options: Any) -> AsyncGenerator[tuple[Proxy, RedisStorage], None]:
    """Open a storage that reaches its server through a proxy."""
    async with (
        Proxy(server.port).running() as proxy,
        opened(f"redis://127.0.0.1:{proxy.port}", **options) as storage,
    ):
        yield proxy, storage


async def in_thread(function: Callable[[], object]) -> None:
    """Do to a server what blocks."""
    await to_thread.run_sync(function)


def connections(server: Server) -> int:
    """Count a server's clients, but for the one that counts."""
    return len(server.ask("CLIENT", "LIST").splitlines()) - 1


def lose_index(server: Server, prefix: str) -> None:
    """Remove what a server holds of the index, as a failover may."""
    for key in server.ask("SCAN", 0, "MATCH", f"{{{prefix}}}:*", "COUNT", 100_000)[1]:
        server.ask("DEL", key)
