"""Fixtures: the event loops of the sweeps, and quiet while everything fails on purpose."""

import logging
from collections.abc import Generator

import pytest

from tests.conftest import EVENT_LOOPS, Backend


@pytest.fixture(scope="module", params=["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    """Run each sweep on asyncio, and on trio with the slow tests."""
    return EVENT_LOOPS[request.param]


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    """Log nothing: a sweep has thousands of failing steps."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
