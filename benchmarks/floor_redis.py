"""Bare commits on Redis: the commit script, called with redis-py."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from redis.asyncio import Redis

from benchmarks.commits import RECORDS, new_run
from rewound.storage.redis.heads import new_fields
from rewound.storage.redis.keys import Keys
from rewound.storage.redis.scripts import SCRIPTS

__all__ = ["grouped_commits", "single_commits"]

KEYS = Keys("rewound-floor")
NONCE = new_run("").nonce


async def single_commits(url: str, n: int) -> Sequence[float]:
    """Return the seconds that each of `n` commits of one caller took."""
    took: list[float] = []
    async with _runs(url, 1) as client:
        for number in range(n):
            began = perf_counter()
            _check(await client.execute_command(*_commit(0, number)))
            took.append(perf_counter() - began)
    return took


async def grouped_commits(url: str, n: int, callers: int) -> float:
    """Return commits a second of callers whose commits leave together in the next pipeline."""
    rounds = -(-n // callers)
    async with _runs(url, callers) as client:
        group = Group(client)
        began = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for run in range(callers):
                tasks.create_task(_call(group, run, rounds))
        return rounds * callers / (perf_counter() - began)


async def _call(group: "Group", run: int, rounds: int) -> None:
    for number in range(rounds):
        _check(await group.send(_commit(run, number)))


class Group:
    """Commands sent while a pipeline is under way leave together in the next one."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: list[tuple[Sequence[Any], asyncio.Future[Any]]] = []
        self._flushing: asyncio.Task[None] | None = None

    def send(self, command: Sequence[Any]) -> "asyncio.Future[Any]":
        """Return the future of a command's reply."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((command, future))
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        return future

    async def _flush(self) -> None:
        while self._waiting:
            sent, self._waiting = self._waiting, []
            pipeline = self._client.pipeline(transaction=False)
            for command, _ in sent:
                pipeline.execute_command(*command)
            for (_, future), reply in zip(sent, await pipeline.execute(), strict=True):
                future.set_result(reply)
            await asyncio.sleep(0)  # let the callers go on


def _check(reply: object) -> None:
    """A refused commit would be a fast one."""
    if not isinstance(reply, int):
        raise SystemExit(f"the commit script refused a commit: {reply}")


def _commit(run: int, number: int) -> Sequence[Any]:
    """Return the words of a run's commit."""
    expected = len(RECORDS) * (number + 1)
    words = (1, NONCE, f"{NONCE}-{number}", expected, 0, *RECORDS)
    return ("EVALSHA", SCRIPTS["append"].sha, 4, *KEYS.run(str(run)).all(), *words)


@asynccontextmanager
async def _runs(url: str, count: int) -> AsyncGenerator[Any]:
    """Make runs to commit to, and remove them."""
    client: Any = Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
    async with client:
        await client.script_load(SCRIPTS["append"].source)
        for run in range(count):
            fields = new_fields(new_run(str(run)), "node")
            await client.hset(KEYS.run(str(run)).head, items=fields)
        try:
            yield client
        finally:
            for run in range(count):
                await client.delete(*KEYS.run(str(run)).all())
