"""Fixtures that every suite shares: the event loops that Rewound runs on, and a clock to set by hand."""

import os
from typing import Any, TypeAlias

import pytest
from hypothesis import settings

from rewound.actors import VirtualClock

# A change must not fail, or pass, by the luck of the draw; locally every run looks somewhere else.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

Backend: TypeAlias = tuple[str, dict[str, Any]]

EVENT_LOOPS: dict[str, Backend] = {
    "asyncio": ("asyncio", {"use_uvloop": False}),
    "uvloop": ("asyncio", {"use_uvloop": True}),
    "trio": ("trio", {}),
}


@pytest.fixture(scope="module", params=EVENT_LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    """Run each test that is marked `anyio` on every event loop."""
    return EVENT_LOOPS[request.param]


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """Return a clock that stands at 0 until the test advances it."""
    return VirtualClock()
