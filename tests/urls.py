"""Every storage, by URL, for tests that run on all of them."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.servers import server_names

__all__ = ["url"]


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
