"""Fixtures: runtimes on one memory and one clock; and every storage by URL."""

import gc
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.runtime.nodes import Net, Stage
from tests.servers import redis_servers
from tests.urls import url

__all__ = ["redis_servers", "url"]


@pytest.fixture(autouse=True, scope="module")
def only_living_reactors() -> None:
    """Let go of the reactors of other tests: a runtime plans every reactor that there is."""
    gc.collect()


@pytest.fixture
async def net(anyio_backend: Any) -> AsyncGenerator[Net, None]:
    """Return a place for runtimes, all of which are left at the end."""
    net = Net()
    yield net
    await net.close()


@pytest.fixture
def stage(net: Net) -> Stage:
    """Return the stage that the bodies of `net` act on."""
    return net.stage
