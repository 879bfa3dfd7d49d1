"""Cells in Redis: what keys they have, when those expire, what an element costs."""

import os
from binascii import crc_hqx
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest
import redis

from rewound.storage import Answer, Cells, Claim, Commit, Mail, Storage
from rewound.storage.redis.keys import BUCKETS, RunKeys
from rewound.storage.redis.scripts import SCRIPTS
from tests.servers import Cluster, Server, started_cluster
from tests.storage.redis_stores import RedisStore, keys_without_expiry, new_prefix
from tests.storage.redis_tools import opened
from tests.storage.stores import HOUR, head_of, owned

pytestmark = pytest.mark.anyio

End: TypeAlias = Callable[[Storage, Claim], Awaitable[object]]

FIXED = 2
"""Keys of a run without cells, mail or watchers: head and journal."""


@pytest.fixture
async def redis_store(redis_server: Server, anyio_backend: Any) -> AsyncGenerator[RedisStore, None]:
    """Return a harness on each server of this machine in turn."""
    with redis_server.client() as client:
        store = RedisStore(redis_server.url, client)
        async with store.running():
            yield store


async def spread(storage: Storage) -> Claim:
    """Create a run with cells in every bucket, of several spaces."""
    claim = await owned(storage)
    for number in range(3):
        cells = {100 * group: b"x" for group in range(BUCKETS)}
        await storage.put(Cells(claim, f"map/{number}", "w0", 0, cells, b"head"))
    return claim


def remaining(store: RedisStore) -> list[int]:
    """Return for how many seconds each key of the run is kept, replies aside; -1 is for ever."""
    stem = RunKeys(store.prefix, "r1").stem
    keys = [key for key in store.client.scan_iter(stem + b"*", count=1000) if b":reply:" not in key]
    return [store.client.ttl(key) for key in keys]


async def by_append(storage: Storage, claim: Claim) -> None:
    """End the run with its last records."""
    await storage.append(Commit(claim, "end", 1, [b"x"], terminal=True, release=True, retention=HOUR))


async def by_append_with_answers(storage: Storage, claim: Claim) -> None:
    """End it with its last records, which also answer mail."""
    for mail_id in ("m1", "m2"):
        await storage.post("r1", Mail(mail_id, b"x", "b"))
    answers = [Answer("m1", b"one"), Answer("m2", b"two")]
    end = Commit(claim, "end", 1, terminal=True, release=True, retention=HOUR, answers=answers)
    assert (await storage.append(end)).released


async def by_release(storage: Storage, claim: Claim) -> None:
    """End it first, and release it then."""
    await storage.append(Commit(claim, "end", 1, terminal=True))
    assert await storage.release(claim, retention=HOUR)


async def by_acknowledgement(storage: Storage, claim: Claim) -> None:
    """End it with failures, which somebody looks at later."""
    await storage.append(Commit(claim, "end", 1, terminal=True, retain=True, release=True))
    assert await storage.acknowledge("r1", HOUR)


@pytest.mark.parametrize("end", [by_append, by_append_with_answers, by_release, by_acknowledgement])
async def test_ended_run_expires_with_all_its_cells(redis_store: RedisStore, end: End) -> None:
    """However it ends, and however many spaces it has: every key at the same time."""
    claim = await spread(redis_store.storage)
    assert remaining(redis_store) == [-1] * (FIXED + BUCKETS)
    await end(redis_store.storage, claim)
    left = remaining(redis_store)
    assert len(left) == FIXED + BUCKETS
    assert max(left) - min(left) <= 1
    assert min(left) > HOUR - 60
    assert keys_without_expiry(redis_store.client, redis_store.prefix) == []


async def test_claimed_run_expires_with_none_of_its_cells(redis_store: RedisStore) -> None:
    """An ended run that is claimed again, for an undo, keeps everything."""
    await by_append(redis_store.storage, await spread(redis_store.storage))
    claim = await redis_store.storage.claim(await head_of(redis_store.storage), "a", "n2")
    assert claim is not None
    assert remaining(redis_store) == [-1] * (FIXED + BUCKETS)
    await redis_store.storage.put(Cells(claim, "map/0", "w1", 1, {0: b"undone"}))
    assert await redis_store.storage.release(claim, retention=HOUR)
    assert -1 not in remaining(redis_store)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("release", ("", "1", "nonce-r1", "60", "0", "")),
        ("append", ("1", "nonce-r1", "c9", "1", "10", "", "", "1", "0", "", "1", "0", "60", "c", "9", "x")),
        ("acknowledge", ("60",)),
        ("claim", ("", "1", "nonce-r1", "b", "n2", "a")),
    ],
)
async def test_script_that_lacks_the_keys_of_cells_changes_nothing(
    redis_store: RedisStore, script: str, words: tuple[str, ...]
) -> None:
    """It asks for them. Whoever dies before he sends them leaves the run as it was."""
    claim = await spread(redis_store.storage)
    if script == "acknowledge":
        await redis_store.storage.append(Commit(claim, "c1", 1, terminal=True, retain=True, release=True))
    before = await head_of(redis_store.storage)
    keys = RunKeys(redis_store.prefix, "r1").all()
    reply = redis_store.client.eval(SCRIPTS[script].source, len(keys), *keys, *words)
    assert reply == [b"cells"]
    assert await head_of(redis_store.storage) == before
    assert set(remaining(redis_store)) == {-1}


async def test_many_small_spaces_have_no_keys_of_their_own(redis_store: RedisStore) -> None:
    """A map inside a map makes thousands of spaces; what a script must touch stays bounded."""
    claim = await owned(redis_store.storage)
    for number in range(300):
        await redis_store.storage.put(Cells(claim, f"map/{number}/inner", "w0", 0, {0: b"x", 1: b"y"}))
    assert len(remaining(redis_store)) <= FIXED + BUCKETS
    await by_append(redis_store.storage, claim)
    assert -1 not in remaining(redis_store)


async def test_cells_of_a_large_space_are_spread_evenly(redis_store: RedisStore) -> None:
    """No bucket is large, because each is freed at once."""
    claim = await owned(redis_store.storage)
    for version in range(16):
        cells = dict.fromkeys(range(1000 * version, 1000 * version + 1000), b"x")
        await redis_store.storage.put(Cells(claim, "map", f"w{version}", version, cells))
    buckets = RunKeys(redis_store.prefix, "r1").buckets()
    sizes = [redis_store.client.hlen(bucket) for bucket in buckets]
    assert max(sizes) <= 301
    assert min(sizes) >= 200


async def test_element_costs_at_most_250_bytes(redis_store: RedisStore) -> None:
    """A cell of 100 bytes, for a result of 64, and its share of a page of 50 source rows of 64 bytes."""
    claim, total = await owned(redis_store.storage), 10_000
    for page in range(total // 50):
        cells = {number: os.urandom(100) for number in range(50 * page, 50 * page + 50)}
        await redis_store.storage.put(Cells(claim, "charges", f"w{page}", page, cells, bytes(60)))
        rows = {page: os.urandom(50 * 64)}
        await redis_store.storage.put(Cells(claim, "charges/rows", f"w{page}", page, rows, bytes(60)))
    buckets = RunKeys(redis_store.prefix, "r1").buckets()
    used = sum(redis_store.client.memory_usage(bucket, samples=0) for bucket in buckets)
    assert used <= 250 * total


@pytest.fixture
def cluster(redis_binary: Path, tmp_path: Path) -> Generator[Cluster, None, None]:
    """Run a cluster that the test may change."""
    with started_cluster(redis_binary, tmp_path) as cluster:
        yield cluster


@pytest.mark.faults
@pytest.mark.slow
async def test_run_whose_slot_moves_ends_whole(cluster: Cluster) -> None:
    """Its cells move key by key; a script never finds half of them, so that all expire or none."""
    prefix, slot = new_prefix(), crc_hqx(b"r1", 0) % 16_384
    moved = anyio.Event()

    async def move() -> None:
        for _ in cluster.moving(slot):
            await anyio.lowlevel.checkpoint()
        moved.set()

    async with opened(cluster.url, prefix=prefix) as storage:
        claim, turns = await spread(storage), 0
        await storage.append(Commit(claim, "c1", 1, terminal=True))
        async with anyio.create_task_group() as group:
            group.start_soon(move)
            while not moved.is_set() or turns < 3:
                await storage.put(Cells(claim, "map/0", f"w{turns + 1}", turns + 1, {turns: b"x"}))
                assert await storage.release(claim, retention=HOUR)
                again = await storage.claim(await head_of(storage), "a", f"n{turns}")
                assert again is not None
                claim, turns = again, turns + 1
        await by_append(storage, claim)
    run = RunKeys(prefix, "r1")
    with redis.RedisCluster(host="127.0.0.1", port=cluster.servers[0].port) as client:
        reader: Any = client
        left = [reader.ttl(key) for key in (run.head, run.journal, *run.buckets())]
    assert max(left) - min(left) <= 1
    assert min(left) > 0
