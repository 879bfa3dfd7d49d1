"""Storage by URL: which backend, which options, and what is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from rewound.errors import StorageConfigError
from rewound.storage import MemoryStorage, open_storage
from rewound.storage.redis import RedisStorage
from rewound.storage.sqlite import SqliteStorage
from tests.storage.stores import new_run

pytestmark = pytest.mark.anyio


async def test_memory_url_gives_a_fresh_store() -> None:
    """`memory://` is nobody else's."""
    one, two = open_storage("memory://"), open_storage("memory://")
    await one.create(new_run(), None)
    assert await two.load("r1") is None


def test_named_memory_is_shared() -> None:
    """`memory://name` is one per name."""
    assert open_storage("memory://shared") is open_storage("memory://shared")
    assert open_storage("memory://shared") is not open_storage("memory://other")


async def test_memory_takes_a_clock() -> None:
    """Options reach the backend's class."""
    assert await open_storage("memory://", clock=lambda: 5.0).now() == 5.0


def test_redis_url_gives_redis() -> None:
    """Nothing connects before `open`."""
    assert isinstance(open_storage("redis://127.0.0.1:1/0"), RedisStorage)


async def test_sqlite_urls_name_relative_and_absolute_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three slashes are relative, four absolute; percent signs are decoded."""
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///one.db", f"sqlite:///{tmp_path}/two%20words.db"):
        storage = open_storage(url)
        assert isinstance(storage, SqliteStorage)
        await storage.open()
        await storage.close()
    assert names_in(tmp_path) == {"one.db", "two words.db"}


def names_in(folder: Path) -> set[str]:
    """List a folder."""
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("sqlite:///x.db?synchronous=FULL", {}, "FULL"),
        ("sqlite:///x.db?synchronous=off", {}, "OFF"),
        ("sqlite:///x.db", {"synchronous": "EXTRA"}, "EXTRA"),
        ("sqlite:///x.db", {}, "NORMAL"),
    ],
)
async def test_sqlite_takes_synchronous(
    url: str, options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By URL or option; NORMAL by default; `checks` tells what it means."""
    monkeypatch.chdir(tmp_path)
    storage = open_storage(url, **options)
    await storage.open()
    [check] = [check for check in await storage.checks() if check.name == "synchronous"]
    await storage.close()
    assert check.message.startswith(message)
    assert check.level == ("warn" if message == "OFF" else "ok")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgres://host/db", "'postgres' is unknown; use memory://"),
        ("orders.db", "'' is unknown"),
        ("sqlite://", "names no file; write sqlite:///relative.db"),
        ("sqlite://host/x.db", "names no file"),
        ("sqlite:///:memory:", "memory:// to keep runs in memory"),
        ("sqlite:///x.db?sync=FULL", "unknown options: sync"),
        ("sqlite:///x.db?synchronous=MAYBE", "synchronous=MAYBE is unknown; use one of OFF, NORMAL"),
    ],
)
def test_unfit_url_is_refused_with_the_remedy(url: str, message: str) -> None:
    """The message says what to write instead."""
    with pytest.raises(StorageConfigError, match=message):
        open_storage(url)


def test_memory_is_memory() -> None:
    """The class is public."""
    assert isinstance(open_storage("memory://"), MemoryStorage)
