"""Redis under test: the harness of `stores` on a real server, under a key prefix of its own."""

import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import redis

from rewound.storage import Storage
from rewound.storage.redis import RedisStorage
from tests.servers import Cluster, Server
from tests.storage.stores import Store

__all__ = ["ALLOWED", "RedisStore", "cluster_store", "keys_without_expiry", "new_prefix", "redis_store"]

ALLOWED = ("all", "expiring", "nodes", "wake", "timer", "status:", "reactor:", "owner:")
"""Index keys that need no expiry: their entries belong to runs, and leave with them."""


class RedisStore(Store):
    """One server's keys under one prefix. Its clock is the server's, so `advance` waits."""

    def __init__(self, url: str, client: "redis.Redis | redis.RedisCluster") -> None:
        self.url = url
        self.client: Any = client
        self.prefix = new_prefix()
        super().__init__(self.new_storage())

    def new_storage(self) -> Storage:
        """Return a storage object on the same keys."""
        return RedisStorage(self.url, prefix=self.prefix, patience=10)

    async def expire(self, node: str) -> None:
        """Remove the lease, as the server does when it expires."""
        self.client.delete(f"{{{self.prefix}}}:lease:{node}")

    async def advance(self, seconds: float) -> None:
        """Wait: the server's clock cannot be set."""
        await anyio.sleep(seconds)


def new_prefix() -> str:
    """Return a prefix that no other test uses."""
    return f"test-{uuid.uuid4().hex}"


def redis_store(request: pytest.FixtureRequest, folder: Path) -> AbstractAsyncContextManager[Store]:
    """Return a harness on the session's server of the name that the test is parametrised with."""
    server_of: Callable[[str], Server] = request.getfixturevalue("redis_servers")
    return _on_server(server_of(request.param))


def cluster_store(request: pytest.FixtureRequest, folder: Path) -> AbstractAsyncContextManager[Store]:
    """Return a harness on a cluster of three."""
    cluster_of: Callable[[str], Cluster] = request.getfixturevalue("redis_clusters")
    return _on_cluster(cluster_of(request.param.removeprefix("cluster-")))


@asynccontextmanager
async def _on_cluster(cluster: Cluster) -> AsyncGenerator[Store, None]:
    with redis.RedisCluster(host="127.0.0.1", port=cluster.servers[0].port) as client:
        async with RedisStore(cluster.url, client).running() as store:
            yield store


@asynccontextmanager
async def _on_server(server: Server) -> AsyncGenerator[Store, None]:
    with server.client() as client:
        async with RedisStore(server.url, client).running() as store:
            yield store


def keys_without_expiry(client: Any, prefix: str) -> list[str]:
    """Return the keys under a prefix that neither expire, nor belong to a live run, nor to the index."""
    found: list[str] = []
    for raw in client.scan_iter(f"*{prefix}*", count=1000):
        key: str = raw.decode()
        run = key.startswith(f"{prefix}:{{")
        if client.pttl(key) >= 0 or (not run and key.partition("}:")[2].startswith(ALLOWED)):
            continue
        head = key.rpartition("}:")[0] + "}:head"
        if run and client.exists(head) and not _should_expire(client, head):
            continue
        found.append(key)
    return found


def _should_expire(client: Any, head: str) -> bool:
    terminal, retained, node = client.hmget(head, "terminal", "retained", "node")
    return terminal is not None and retained is None and node is None
