"""Redis that dies, forgets, hangs up and freezes: no record is lost or stored twice, and work goes on."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from rewound.errors import StorageError
from rewound.storage import Claim, Commit, Mail, Storage
from rewound.storage.redis import RedisStorage
from tests.servers import Server, started
from tests.storage.redis_load import loaded
from tests.storage.redis_stores import new_prefix
from tests.storage.redis_tools import connections, in_thread, opened, proxied
from tests.storage.stores import LEASE, RESET, head_of, new_run, owned

pytestmark = [pytest.mark.anyio, pytest.mark.faults]

ROUNDS = int(os.environ.get("REWOUND_FAULT_ROUNDS", "4"))


@pytest.fixture
def durable(redis_binary: Path, tmp_path: Path) -> Any:
    """Run a server of the test's own that keeps what it has acknowledged."""
    with started(redis_binary, tmp_path / "server", persistence="always") as server:
        yield server


async def test_killed_server_that_comes_back_has_lost_and_doubled_nothing(durable: Server) -> None:
    """SIGKILL and restart: appends resume within 5 s, and repeats of stored ones are recognised."""
    async with opened(durable.url) as storage, loaded(storage) as load:
        for _ in range(ROUNDS):
            await load.progress(100)
            await in_thread(durable.kill)
            await in_thread(durable.start)
            started_at = time.monotonic()
            await load.progress(8)
            assert time.monotonic() - started_at < 5


async def test_stopped_server_that_comes_back_has_lost_nothing(redis_binary: Path, tmp_path: Path) -> None:
    """SIGTERM with `appendfsync everysec`: the server saves what it has."""
    with started(redis_binary, tmp_path, persistence="everysec") as server:
        async with opened(server.url) as storage, loaded(storage) as load:
            for _ in range(ROUNDS):
                await load.progress(100)
                await in_thread(server.terminate)
                await in_thread(server.start)
                await load.progress(8)


async def test_killed_connections_are_made_again_and_none_leaks(durable: Server) -> None:
    """`CLIENT KILL` in a loop: every append succeeds, with as many connections as before."""
    async with opened(durable.url) as storage, storage.notices("a"), loaded(storage) as load:
        await storage.now()
        before = connections(durable)
        for _ in range(5 * ROUNDS):
            await load.progress(20)
            durable.ask("CLIENT", "KILL", "TYPE", "normal")
        await load.progress(20)
        await storage.now()
        await head_of(storage, "run0")
        assert connections(durable) <= before
    assert connections(durable) == 0


async def test_forgotten_scripts_are_taught_again(durable: Server) -> None:
    """`SCRIPT FLUSH` in a loop: nobody notices."""
    async with opened(durable.url) as storage, loaded(storage) as load:
        for _ in range(5 * ROUNDS):
            await load.progress(20)
            durable.ask("SCRIPT", "FLUSH")


async def test_frozen_server_is_waited_for(durable: Server) -> None:
    """A server that answers nothing for longer than the socket's timeout only delays."""
    async with opened(durable.url, timeout=0.1) as storage, loaded(storage) as load:
        await load.progress(20)
        durable.pause()
        await anyio.sleep(0.5)  # the frozen server gives no sign to wait for
        durable.resume()
        await load.progress(20)


async def test_append_whose_answer_is_lost_is_stored_once(redis_server: Server) -> None:
    """The line is cut after the script and before its reply; the repeat is recognised by its commit."""
    async with proxied(redis_server) as (proxy, storage), loaded(storage, 2) as load:
        for _ in range(5 * ROUNDS):
            await load.progress(5)
            proxy.cut_replies = 1
        await load.progress(5)
        assert proxy.lines > 5 * ROUNDS


WRITES: dict[str, Callable[[Storage, Claim], Any]] = {
    "create": lambda storage, claim: storage.create(new_run("r2"), "a"),
    "append": lambda storage, claim: storage.append(
        Commit(claim, "c1", 1, [b"x"], status="completed", terminal=True, due=5e9)
    ),
    "append and release": lambda storage, claim: storage.append(Commit(claim, "c1", 1, release=True)),
    "release": lambda storage, claim: storage.release(claim, retention=60, wake=True),
    "post": lambda storage, claim: storage.post("r1", Mail("m1", b"body", "b")),
    "join": lambda storage, claim: storage.join("z", LEASE),
    "renew": lambda storage, claim: storage.renew("a", LEASE),
    "leave": lambda storage, claim: storage.leave("a"),
    "watch": lambda storage, claim: storage.watch("r1", "a"),
    "acknowledge": lambda storage, claim: storage.acknowledge("r1", 60),
    "load": lambda storage, claim: storage.load("r1"),
}


@pytest.mark.parametrize("write", WRITES)
async def test_any_call_whose_answer_is_lost_is_repeated(redis_server: Server, write: str) -> None:
    """Promise 6: with its answer lost, a call answers as it does otherwise."""
    answers: list[Any] = []
    for cuts in (0, 1):
        async with proxied(redis_server) as (proxy, storage):
            claim = await owned(storage)
            await storage.load("r1")
            proxy.cut_replies = cuts
            answers.append(await WRITES[write](storage, claim))
            assert proxy.cut_replies == 0
    assert _timeless(answers[0]) == _timeless(answers[1])


async def test_claim_whose_answer_is_lost_is_ours(redis_server: Server) -> None:
    """Promise 6 for `claim`: the nonce tells the repeat."""
    async with proxied(redis_server) as (proxy, storage):
        await storage.create(new_run(), None)
        head = await head_of(storage)
        proxy.cut_replies = 1
        claim = await storage.claim(head, "b", "mine")
        assert claim == Claim("r1", "b", 1, "mine")


async def test_server_that_stays_away_is_named(redis_server: Server) -> None:
    """When patience ends, the error says which server it was."""
    async with proxied(redis_server, patience=0.3) as (proxy, storage):
        claim = await owned(storage)
        proxy.cut_replies = 1_000_000
        with pytest.raises(StorageError, match=rf"127\.0\.0\.1:{proxy.port}") as caught:
            await storage.append(Commit(claim, "c1", 1, [b"x"]))
        assert "gave no good answer for 0.3 s" in str(caught.value)


async def test_cancelled_calls_leave_the_connection_in_order(redis_server: Server) -> None:
    """Lesson 40: a caller that was cancelled at any moment leaves nobody else its answer."""
    async with opened(redis_server.url) as storage:
        claim = await owned(storage)
        for number in range(50):
            with anyio.move_on_after(number * 0.00002):
                await storage.load("r1")
            appended = await storage.append(Commit(claim, f"c{number}", 1 + number, [b"x"]))
            assert appended.length == number + 2


async def test_listener_that_lost_its_line_says_so_and_listens_again(durable: Server) -> None:
    """After a restart the stream yields a `reset`, and notices as before."""
    async with opened(durable.url) as storage, storage.notices("a") as notices:
        await owned(storage)
        assert await notices.receive() == RESET
        await in_thread(durable.restart)
        assert await notices.receive() == RESET
        await storage.post("r1", Mail("m1", b"", "b"))
        assert (await notices.receive()).kind == "mail"


async def test_listener_without_a_server_fails(durable: Server) -> None:
    """Who enters `notices` gets an error when patience ends."""
    async with opened(durable.url, patience=0.2) as storage:
        await in_thread(durable.kill)
        with pytest.raises(StorageError, match="cannot be listened to"):
            async with storage.notices("a"):
                pytest.fail("nobody can listen")


async def test_demoted_server_is_left_and_found_again(durable: Server) -> None:
    """A primary that became a replica refuses writes; they go on when it, or another, is one."""
    async with opened(durable.url) as storage, loaded(storage) as load:
        await load.progress(20)
        durable.ask("REPLICAOF", "127.0.0.1", 1)
        before = load.total
        await anyio.sleep(0.1)  # writers that are refused give no sign to wait for
        assert load.total < before + 20
        durable.ask("REPLICAOF", "NO", "ONE")
        await load.progress(20)


async def test_identity_changes_with_a_restart(durable: Server) -> None:
    """Whoever sees another identity knows that the index may have lost entries."""
    async with opened(durable.url) as storage:
        before = await storage.identity()
        await in_thread(durable.restart)
        assert await storage.identity() != before


async def test_server_that_starts_late_is_waited_for(redis_binary: Path, tmp_path: Path) -> None:
    """`open` is as patient as every other call."""
    server = Server(redis_binary, tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(in_thread, server.start)
        async with opened(server.url) as storage:
            assert await storage.now() > 0
    server.kill()


async def test_server_that_is_not_there_fails_open(redis_binary: Path, tmp_path: Path) -> None:
    """After its patience `open` says which server it looked for."""
    storage = RedisStorage(Server(redis_binary, tmp_path).url, patience=0.1)
    with pytest.raises(StorageError, match="could not be reached"):
        await storage.open()


async def test_closing_without_a_server_does_not_hang(durable: Server) -> None:
    """`close` gives what is queued a second, and then up."""
    storage = RedisStorage(durable.url, prefix=new_prefix(), patience=60)
    await storage.open()
    claim = await owned(storage)
    await in_thread(durable.kill)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_expect_closed, storage, claim)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            await storage.close()


async def _expect_closed(storage: Storage, claim: Claim) -> None:
    with pytest.raises(StorageError, match="closed"):
        await storage.append(Commit(claim, "c1", 1, [b"x"]))


def _timeless(answer: Any) -> str:
    """Leave times out of an answer."""
    words = repr(answer).split(", ")
    return ", ".join(word for word in words if not word.startswith(("created", "updated", "expires")))
