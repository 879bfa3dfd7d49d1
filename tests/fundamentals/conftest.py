"""Fixtures: a runtime on every storage, whose reactors may write down what they do."""

import gc
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from rewound import Runtime
from tests.servers import redis_servers, server_names

__all__ = ["redis_servers"]


@pytest.fixture(autouse=True, scope="module")
def only_living_reactors() -> None:
    """Let go of the reactors of other tests: a runtime plans every reactor that there is."""
    gc.collect()


@pytest.fixture(params=["memory", "sqlite", *server_names()])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty storage: in memory, in a SQLite file, on a Redis server."""
    if request.param == "memory":
        return f"memory://{uuid4().hex}"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/rewound.db"
    server = request.getfixturevalue("redis_servers")(request.param)
    server.ask("FLUSHALL")
    return str(server.url)


@pytest.fixture
def log() -> list[str]:
    """Return the list that steps write into, as `ctx.state["log"]`."""
    return []


@pytest.fixture
async def runtime(url: str, log: list[str], anyio_backend: Any) -> AsyncGenerator[Runtime, None]:
    """Return a runtime in its block."""
    async with Runtime(url, state={"log": log}) as runtime:
        yield runtime
