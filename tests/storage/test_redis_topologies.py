"""Sentinel and Cluster for real: primaries that fail over, slots that move, nodes that go and come."""

from binascii import crc_hqx
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
from redis.exceptions import AskError

from rewound.errors import StorageConfigError, StorageError
from rewound.storage import Commit, Storage
from rewound.storage.redis import RedisStorage
from rewound.storage.redis.dialing import dial
from rewound.storage.redis.lane import Lane
from rewound.storage.redis.requests import Request
from rewound.storage.redis.scripts import pack
from rewound.storage.redis.urls import parse_target
from tests.servers import Cluster, Sentinels, Server, started_cluster, started_sentinels
from tests.storage.redis_load import loaded
from tests.storage.redis_stores import new_prefix
from tests.storage.redis_tools import in_thread, lose_index, opened
from tests.storage.stores import RESET, head_of, listed, needs_of, new_run, owned

pytestmark = [pytest.mark.anyio, pytest.mark.faults, pytest.mark.slow]


@pytest.fixture
def sentinels(redis_binary: Path, tmp_path: Path) -> Generator[Sentinels, None, None]:
    """Run a primary, a replica and a sentinel."""
    with started_sentinels(redis_binary, tmp_path) as group:
        yield group


@pytest.fixture
def cluster(redis_binary: Path, tmp_path: Path) -> Generator[Cluster, None, None]:
    """Run a cluster that the test may break."""
    with started_cluster(redis_binary, tmp_path, persistence="always") as cluster:
        yield cluster


async def test_replicated_writes_survive_a_failover(sentinels: Sentinels) -> None:
    """With `wait_replicas`, nothing that was acknowledged is lost with the primary, and work goes on."""
    async with opened(sentinels.url, wait_replicas=1, timeout=1.0) as storage:
        before = await storage.identity()
        async with storage.notices("a") as notices, loaded(storage) as load:
            assert await notices.receive() == RESET
            await load.progress(100)
            await in_thread(sentinels.primary.kill)
            await in_thread(sentinels.promoted)
            await in_thread(sentinels.primary.start)
            await load.progress(100)
            assert await notices.receive() == RESET
        assert await storage.identity() != before


async def test_replica_is_refused(sentinels: Sentinels) -> None:
    """A read-only server cannot hold runs; the message says whose URL to use."""
    storage = RedisStorage(sentinels.replica.url)
    with pytest.raises(StorageConfigError, match="read-only replica; use the URL of its primary"):
        await storage.open()


async def test_missing_replicas_are_waited_for_and_then_named(redis_server: Server) -> None:
    """A write that too few replicas have is not acknowledged."""
    async with opened(redis_server.url, wait_replicas=1, timeout=0.5, patience=1.0) as storage:
        with pytest.raises(StorageError, match="0 of 1 replicas have the write"):
            await storage.create(new_run(), None)


async def test_slot_that_moves_is_followed(cluster: Cluster) -> None:
    """A run is written on when its slot has moved from node to node; while it moves, writers wait."""
    slot = crc_hqx(b"run0", 0) % 16_384
    async with opened(cluster.url) as storage, loaded(storage, 1) as load:
        await load.progress(20)
        for _ in cluster.moving(slot):
            await anyio.sleep(0.2)  # Redis refuses scripts whose keys do not all exist meanwhile
        await load.progress(20)


async def test_slot_that_has_moved_is_found(cluster: Cluster) -> None:
    """A client that was idle meanwhile is told where the run is now."""
    async with opened(cluster.url) as storage:
        claim = await owned(storage)
        for _ in cluster.moving(crc_hqx(b"r1", 0) % 16_384):
            pass
        assert (await storage.append(Commit(claim, "c1", 1, [b"x"]))).length == 2


async def test_listening_goes_on_with_a_node_down(cluster: Cluster) -> None:
    """Any other node passes the notices on."""
    async with opened(cluster.url) as storage:
        await in_thread(cluster.servers[0].kill)
        async with storage.notices("a") as notices:
            assert await notices.receive() == RESET


async def test_cluster_that_was_down_is_found_again(cluster: Cluster) -> None:
    """While no node can say who has which slot, writers wait."""
    async with opened(cluster.url) as storage, storage.notices("a") as notices, loaded(storage) as load:
        assert await notices.receive() == RESET
        await load.progress(20)
        for server in cluster.servers:
            await in_thread(server.kill)
        await anyio.sleep(0.2)  # nothing answers, so there is no sign to wait for
        for server in cluster.servers:
            await in_thread(server.start)
        await load.progress(20)
        assert await notices.receive() == RESET


async def test_worst_finding_of_all_nodes_is_reported(cluster: Cluster) -> None:
    """One unfit node makes the cluster unfit."""
    async with opened(cluster.url) as storage:
        cluster.servers[2].ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        assert {check.name: check.level for check in await storage.checks()}["memory"] == "fail"


async def test_node_that_comes_back_is_waited_for(cluster: Cluster) -> None:
    """A primary without a replica takes its slots along, and brings them back."""
    async with opened(cluster.url) as storage, loaded(storage) as load:
        for server in cluster.servers:
            await load.progress(50)
            await in_thread(server.restart)
            await load.progress(50)


async def test_index_is_completed_by_a_scan_of_all_nodes(cluster: Cluster) -> None:
    """After a failover that lost the index, `scan` finds the runs of every node again."""
    prefix = new_prefix()
    async with opened(cluster.url, prefix=prefix) as storage:
        await _create_many(storage)
        for server in cluster.servers:
            lose_index(server, prefix)
        assert await listed(storage) == []
        cursor = await storage.scan(limit=5)
        while cursor is not None:
            cursor = await storage.scan(cursor, 5)
        assert len(await listed(storage)) == 10
        assert len(await needs_of(storage)) == 10


async def test_cluster_is_refused_under_a_plain_url(cluster: Cluster) -> None:
    """The message says which URL to use."""
    async with opened(cluster.servers[0].url) as storage:
        with pytest.raises(StorageError, match=r"use a redis\+cluster:// URL"):
            await _create_many(storage)


async def test_server_that_is_no_cluster_is_refused(redis_server: Server) -> None:
    """The message says what the server said."""
    storage = RedisStorage(redis_server.url.replace("redis://", "redis+cluster://").removesuffix("/0"))
    with pytest.raises(StorageConfigError, match="cluster support disabled"):
        await storage.open()


async def test_any_node_of_a_cluster_will_do(cluster: Cluster) -> None:
    """The first host of the URL may be down."""
    down = f"redis+cluster://127.0.0.1:1,127.0.0.1:{cluster.servers[1].port}"
    async with opened(down) as storage, storage.notices("a") as notices:
        assert await notices.receive() == RESET
        await owned(storage)
        assert (await head_of(storage)).node == "a"


async def _create_many(storage: Storage) -> None:
    for number in range(10):
        await storage.create(new_run(f"r{number}"), None)


async def test_command_that_is_sent_to_and_fro_is_slowed_down(
    cluster: Cluster, anyio_backend_name: str
) -> None:
    """Nodes that contradict each other do not make a sender spin, and in the end are named."""
    hops: list[Request] = []

    def send_back(request: Request, error: AskError) -> None:
        hops.append(request)
        lane.submit(request)

    if anyio_backend_name == "trio":
        return  # lanes run on asyncio only
    url = cluster.servers[0].url
    lane = Lane("a node", lambda: dial(parse_target(url, {})), 1.0, redirect=send_back)
    foreign = next(key for key in "abcdefgh" if crc_hqx(key.encode(), 0) % 16_384 > 10_000)
    request = Request(b"", pack(("GET", foreign)), 1, "commit", 0.5)
    lane.submit(request)
    with pytest.raises(StorageError, match="a node gave no good answer"):
        await request.future
    await lane.close(0.1)
    assert 5 <= len(hops) < 100
