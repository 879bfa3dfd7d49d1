"""Fixtures: a runtime on every storage, whose reactors may write down what they do."""

import gc
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from rewound import Runtime
from tests.servers import redis_servers
from tests.urls import url

__all__ = ["redis_servers", "url"]


@pytest.fixture(autouse=True, scope="module")
def only_living_reactors() -> None:
    """Let go of the reactors of other tests: a runtime plans every reactor that there is."""
    gc.collect()


@pytest.fixture
def log() -> list[str]:
    """Return the list that steps write into, as `ctx.state["log"]`."""
    return []


@pytest.fixture
async def runtime(url: str, log: list[str], anyio_backend: Any) -> AsyncGenerator[Runtime, None]:
    """Return a runtime in its block."""
    async with Runtime(url, state={"log": log}) as runtime:
        yield runtime
