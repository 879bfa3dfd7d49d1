"""Fixtures: every backend behind the harness of `stores`."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.servers import redis_binary, redis_clusters, redis_server, redis_servers, server_names
from tests.storage.redis_stores import cluster_store, redis_store
from tests.storage.stores import MemoryStore, SqliteStore, Store, WrappedStore

__all__ = ["redis_binary", "redis_clusters", "redis_server", "redis_servers", "store", "virtual_store"]

MakeStore: TypeAlias = Callable[[pytest.FixtureRequest, Path], AbstractAsyncContextManager[Store]]


def memory_store(request: pytest.FixtureRequest, folder: Path) -> AbstractAsyncContextManager[Store]:
    """Return a harness on memory."""
    return MemoryStore().running()


def sqlite_store(request: pytest.FixtureRequest, folder: Path) -> AbstractAsyncContextManager[Store]:
    """Return a harness on a SQLite file."""
    return SqliteStore(folder / "rewound.db").running()


def wrapped_store(request: pytest.FixtureRequest, folder: Path) -> AbstractAsyncContextManager[Store]:
    """Return a harness on memory in wrappers."""
    return WrappedStore().running()


VIRTUAL: dict[str, MakeStore] = {"memory": memory_store, "wrapped": wrapped_store, "sqlite": sqlite_store}
"""Backends whose clock the tests move."""

REAL: dict[str, MakeStore] = dict.fromkeys(server_names(), redis_store)
"""Backends on the clock of their server."""


CLUSTERS: dict[str, MakeStore] = {f"cluster-{name}": cluster_store for name in server_names()}
"""The same, with runs and index on different servers."""


@pytest.fixture(params=[*VIRTUAL, *REAL, *(pytest.param(name, marks=pytest.mark.slow) for name in CLUSTERS)])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: Any
) -> AsyncGenerator[Store, None]:
    """Run the test on every backend."""
    make = (VIRTUAL | REAL | CLUSTERS)[request.param]
    async with make(request, tmp_path) as store:
        yield store


@pytest.fixture(params=[*VIRTUAL])
async def virtual_store(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: Any
) -> AsyncGenerator[Store, None]:
    """Run the test on every backend whose clock the tests move."""
    async with VIRTUAL[request.param](request, tmp_path) as store:
        yield store
