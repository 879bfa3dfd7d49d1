"""Servers fit and unfit: what `open` refuses, what `checks` tell, how a server is reached."""

from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from rewound.errors import StorageConfigError, StorageError
from rewound.storage import Answer, Commit, Mail, Query, open_storage
from rewound.storage.redis import RedisStorage
from tests.servers import Persistence, Server, started
from tests.storage.redis_stores import new_prefix
from tests.storage.redis_tools import connections, opened
from tests.storage.stores import LEASE, RESET, head_of, needs_of, owned

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(redis_binary: Path, tmp_path: Path) -> Generator[Server, None, None]:
    """Run a server that the test may change."""
    with started(redis_binary, tmp_path) as server:
        yield server


async def test_unix_socket_reaches_the_server(redis_server: Server) -> None:
    """The same runs, by another way."""
    prefix = new_prefix()
    async with opened(redis_server.url, prefix=prefix) as storage:
        await owned(storage)
    async with opened(redis_server.socket_url, prefix=prefix) as storage:
        assert (await head_of(storage)).node == "a"


async def test_database_of_the_url_is_used(server: Server) -> None:
    """Keys go where the URL says."""
    async with opened(server.url.removesuffix("/0") + "/5") as storage:
        await owned(storage)
    assert b"db5" in server.ask("INFO", "keyspace")


async def test_password_is_given_and_needed(server: Server) -> None:
    """A wrong password is refused at once, without showing it."""
    server.ask("CONFIG", "SET", "requirepass", "secret")
    async with opened(server.url.replace("://", "://:secret@")) as storage:
        assert await storage.now() > 0
    for url in (server.url, server.url.replace("://", "://:wrong@")):
        with pytest.raises(StorageConfigError, match="refuses this client") as caught:
            await RedisStorage(url).open()
        assert "wrong@" not in str(caught.value)


async def test_evicting_server_is_refused(server: Server) -> None:
    """The message says which setting to change to what, and no connection is left."""
    server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with pytest.raises(StorageConfigError, match="set maxmemory-policy to noeviction"):
        await RedisStorage(server.url).open()
    assert connections(server) == 0


async def test_cancelled_close_still_disconnects(server: Server) -> None:
    """Whoever closes may be cancelled while it does; neither a connection nor a listener is left."""
    storage = RedisStorage(server.url, prefix=new_prefix())
    await storage.open()
    async with storage.notices("a") as stream:
        assert await stream.receive() == RESET
        with anyio.CancelScope() as scope:
            scope.cancel()
            await storage.close()
    assert connections(server) == 0


async def test_server_with_full_memory_is_waited_for_and_then_named(server: Server) -> None:
    """Memory may be freed; if it is not, the error tells why writes fail."""
    async with opened(server.url, patience=0.3) as storage:
        server.ask("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StorageError, match="maxmemory"):
            await owned(storage)
        server.ask("CONFIG", "SET", "maxmemory", "0")
        await owned(storage)


@pytest.mark.parametrize(
    ("persistence", "level", "text"),
    [
        ("none", "warn", "a restart loses every run"),
        ("everysec", "ok", "up to a second"),
        ("always", "ok", "on disk before it is answered"),
    ],
)
async def test_checks_tell_what_a_restart_loses(
    redis_binary: Path, tmp_path: Path, persistence: Persistence, level: str, text: str
) -> None:
    """`checks` read the server's own settings."""
    with started(redis_binary, tmp_path, persistence=persistence) as server:
        async with opened(server.url) as storage:
            [finding] = [check for check in await storage.checks() if check.name == "persistence"]
    assert finding.level == level
    assert text in finding.message


async def test_forbidden_config_is_a_warning(server: Server) -> None:
    """A managed server may not let its settings be read."""
    server.ask("ACL", "SETUSER", "guest", "on", ">pw", "~*", "&*", "+@all", "-config")
    async with opened(server.url.replace("://", "://guest:pw@")) as storage:
        [finding] = [check for check in await storage.checks() if check.name == "persistence"]
    assert finding.level == "warn"
    assert "could not be read" in finding.message


async def test_forbidden_command_is_refused_at_once(server: Server) -> None:
    """A missing permission does not pass by waiting."""
    server.ask("ACL", "SETUSER", "guest", "on", ">pw", "~*", "&*", "+@all", "-hgetall")
    async with opened(server.url.replace("://", "://guest:pw@")) as storage:
        with pytest.raises(StorageError, match="refused a command"):
            await storage.mail("r1")


async def test_storage_that_is_not_open_says_so(redis_server: Server) -> None:
    """Before `open` and after `close`."""
    storage = RedisStorage(redis_server.url)
    with pytest.raises(StorageError, match="not open"):
        await storage.now()
    await storage.open()
    await storage.open()
    await storage.close()
    with pytest.raises(StorageError, match="not open"):
        await storage.now()


async def test_closed_storage_can_be_opened_again(redis_server: Server) -> None:
    """One object may serve several runtimes, one after the other."""
    storage = RedisStorage(redis_server.url, prefix=new_prefix())
    for _ in range(2):
        await storage.open()
        assert await storage.now() > 0
        await storage.close()


async def test_cancelled_open_leaves_nothing(server: Server) -> None:
    """Neither a connection nor a half-open storage."""
    storage = RedisStorage(server.url)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await storage.open()
    assert connections(server) == 0
    with pytest.raises(StorageError, match="not open"):
        await storage.now()


async def test_open_storage_finds_the_backend(redis_server: Server) -> None:
    """The URL's scheme chooses it; options are passed on."""
    storage = open_storage(redis_server.url, prefix=new_prefix(), patience=1.0)
    assert isinstance(storage, RedisStorage)
    await storage.open()
    await storage.close()


async def test_thousand_callers_open_no_connection(server: Server) -> None:
    """Connections are bounded, however many wait."""
    async with opened(server.url) as storage, storage.notices("a"):
        await owned(storage)
        await head_of(storage)
        before = connections(server)
        async with anyio.create_task_group() as tasks:
            for _ in range(1000):
                tasks.start_soon(head_of, storage)
        assert connections(server) == before == 4
    assert connections(server) == 0


async def test_documented_permissions_are_enough(server: Server) -> None:
    """Everything works under the ACL that docs/redis.md gives."""
    page = (Path(__file__).parents[2] / "docs" / "redis.md").read_text("utf-8")
    user, *rules = page.partition("```\nuser ")[2].partition("```")[0].replace("rewound", "shop").split()
    server.ask("ACL", "SETUSER", user, *rules)
    url = server.url.replace("://", "://shop:password@")
    async with opened(url, prefix="shop") as storage, storage.notices("a") as notices:
        assert await notices.receive() == RESET
        claim = await owned(storage)
        await storage.watch("r1", "a")
        await storage.post("r1", Mail("m1", b"x", "a"))
        await storage.append(
            Commit(
                claim,
                "c1",
                1,
                [b"x"],
                "ended",
                terminal=True,
                due=1.0,
                answers=[Answer("m1", b"y")],
                release=True,
            )
        )
        assert await storage.reply("m1") == b"y"
        assert [head.run_id for head in (await storage.runs(Query())).heads] == ["r1"]
        assert await needs_of(storage, "a") == [("r1", "alarm")]
        await storage.purge()
        await storage.scan()
        await storage.renew("a", LEASE)
        assert {check.level for check in await storage.checks()} == {"ok", "warn"}
        await storage.unwatch("r1", "a")
        await storage.leave("a")


async def test_closing_ends_the_streams_of_notices(server: Server) -> None:
    """Who still listens is told, and leaves without an error or a connection."""
    async with opened(server.url) as storage:
        async with storage.notices("a") as notices:
            assert await notices.receive() == RESET
            await storage.close()
            with pytest.raises(anyio.EndOfStream):
                await notices.receive()
        assert connections(server) == 0
