"""The wire: commands leave in groups, in order, once; in the asyncio loop where they are sent."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from rewound.errors import StorageError
from rewound.storage import Claim, Commit, Notice, Query
from rewound.storage.redis.backend import Backend
from rewound.storage.redis.dialing import dial
from rewound.storage.redis.keys import Keys, entry_name
from rewound.storage.redis.lane import Lane
from rewound.storage.redis.links import Link
from rewound.storage.redis.notices import Listener
from rewound.storage.redis.requests import Request
from rewound.storage.redis.scripts import SCRIPTS, pack
from rewound.storage.redis.urls import parse_target
from rewound.storage.redis.wire import Settings
from tests.servers import Server
from tests.storage.redis_load import Proxy
from tests.storage.redis_stores import new_prefix
from tests.storage.stores import HOUR, LEASE, RESET, new_run

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Run these tests where redis-py runs; `test_redis_portal` brings trio there."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@asynccontextmanager
async def backend_on(url: str) -> AsyncGenerator[Backend, None]:
    """Open a backend in the test's own loop."""
    backend = Backend(parse_target(url, {}), Keys(new_prefix()), Settings())
    await backend.open()
    try:
        yield backend
    finally:
        await backend.close()


async def claimed(backend: Backend, run_id: str = "r1") -> Claim:
    """Create a run that a live node owns."""
    await backend.leases.join("a", LEASE)
    created = await backend.runs.create(new_run(run_id), "a")
    assert created.claim is not None
    return created.claim


async def test_appends_of_many_callers_leave_together(redis_server: Server) -> None:
    """A hundred callers cost a few writes of the socket, not a hundred."""
    async with (
        Proxy(redis_server.port).running() as proxy,
        backend_on(f"redis://127.0.0.1:{proxy.port}") as backend,
    ):
        claims = [await claimed(backend, f"r{number}") for number in range(100)]
        before = proxy.requests
        async with asyncio.TaskGroup() as tasks:
            for claim in claims:
                tasks.create_task(backend.runs.append(Commit(claim, "c1", 1, [b"x"])))
        assert proxy.requests - before < 10


async def test_big_batches_are_cut(redis_server: Server) -> None:
    """More records than one batch may hold leave in several, and all arrive."""
    async with backend_on(redis_server.url) as backend:
        claims = [await claimed(backend, f"r{number}") for number in range(20)]
        async with asyncio.TaskGroup() as tasks:
            for claim in claims:
                records = [b"x" * 10_000] * 100
                tasks.create_task(backend.runs.append(Commit(claim, "c1", 1, records)))
        for claim in claims:
            journal = await backend.runs.load(claim.run_id)
            assert journal is not None
            assert journal.head.length == len(journal.records) == 101


async def test_abandoned_commands_are_not_sent(redis_server: Server) -> None:
    """Who was cancelled before his command left has not written."""
    async with backend_on(redis_server.url) as backend:
        claim = await claimed(backend)
        task = asyncio.create_task(backend.runs.append(Commit(claim, "c1", 1, [b"x"])))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert (await backend.runs.append(Commit(claim, "c2", 1, [b"y"]))).length == 2


@pytest.mark.parametrize("ahead", [-1000.0, 1000.0])
async def test_clock_that_is_wrong_is_set_right(redis_server: Server, ahead: float) -> None:
    """A write that seems too late for its index entry is made again with a new one."""
    async with backend_on(redis_server.url) as backend:
        now = await backend.leases.now()
        backend.clock.set(now + ahead)
        claim = await claimed(backend)
        backend.clock.set(now + ahead)
        await backend.runs.append(Commit(claim, "c1", 1, status="done", due=now + HOUR))
        backend.clock.set(now + ahead)
        assert await backend.runs.release(claim, retention=HOUR, wake=True, due=None)
        journal = await backend.runs.load("r1")
        assert journal is not None
        assert abs(journal.head.updated - now) < 10
        claim2 = await backend.runs.claim(journal.head, "a", "again")
        assert claim2 is not None


async def test_broken_lane_leaves_nobody_waiting(redis_server: Server) -> None:
    """A mistake in the lane's own task is named to its callers, then and later."""

    async def broken() -> Link:
        raise ZeroDivisionError

    lane = Lane("nowhere", broken, 1.0)
    for _ in range(2):
        request = Request(b"", pack((b"PING",)), 1, "commit", 1.0)
        lane.submit(request)
        with pytest.raises(StorageError, match="its lane broke: ZeroDivisionError"):
            await request.future
    await lane.close(1.0)


async def test_silent_connection_is_tried_and_given_up(redis_server: Server) -> None:
    """A listener pings when nothing comes, and connects anew when nothing answers."""
    notices: asyncio.Queue[Notice] = asyncio.Queue()
    async with Proxy(redis_server.port).running() as proxy:
        target = parse_target(f"redis://127.0.0.1:{proxy.port}", {})
        listener = Listener(lambda: dial(target), "c", notices.put_nowait, quiet=0.05)
        await listener.started(5.0)
        assert await notices.get() == RESET
        await proxy.asked(2)
        assert notices.empty()
        proxy.mute()
        assert await asyncio.wait_for(notices.get(), 5) == RESET
        await listener.stop()


async def test_listener_that_cannot_start_says_so(redis_server: Server) -> None:
    """After its patience the caller is told."""
    target = parse_target("redis://127.0.0.1:1", {})
    listener = Listener(lambda: dial(target), "c", print)
    with pytest.raises(StorageError, match="cannot be listened to"):
        await listener.started(0.1)
    await listener.stop()


async def test_run_created_while_its_old_rows_are_removed_stays_listed(redis_server: Server) -> None:
    """Rows that a purge removed from under a new run of the same id are put back."""
    async with backend_on(redis_server.url) as backend:
        await claimed(backend)
        removed = await backend.upkeep.remove([entry_name("r1", "running", "Order"), entry_name("r1")])
        assert removed == 1
        page = await backend.listing.runs(Query(status="running"))
        assert [head.run_id for head in page.heads] == ["r1"]


async def test_write_that_comes_late_for_its_entries_is_refused(redis_server: Server) -> None:
    """By then its index entries may have been dropped as stale: nothing is written."""
    async with backend_on(redis_server.url) as backend:
        claim = await claimed(backend)
        run, new = backend.keys.run("r1"), backend.keys.run("r2")
        late, epoch = "1.0", b"%d" % claim.epoch
        more = (late, b"=done", b"", b"0", "5e9", b"0", b"0", "60.0", "", b"600")
        fields = msgspec.msgpack.encode(["status", "running"])
        calls = {
            "create": SCRIPTS["create"].call((new.head, new.journal), late, fields, b"x"),
            "claim": SCRIPTS["claim"].call(run.all(), late, epoch, claim.nonce, "b", "n", "a"),
            "append": SCRIPTS["append"].call(run.all(), epoch, claim.nonce, "c1", b"1", b"10", *more, b"x"),
            "release": SCRIPTS["release"].call(run.all(), late, epoch, claim.nonce, "60.0", b"1", ""),
            "post": SCRIPTS["post"].call(
                (run.head, run.mail, run.reply("m")), late, "m", "b", b"x", "", "r1"
            ),
        }
        before = await backend.runs.load("r1")
        for name, call in calls.items():
            tag = new.tag if name == "create" else run.tag
            reply = await backend.wire.send(tag, call)
            assert reply[0] == b"late", name
        assert await backend.runs.load("r1") == before
        assert await backend.runs.load("r2") is None


async def test_abandoned_creation_leaves_at_most_a_stale_entry(redis_server: Server) -> None:
    """Neither the entries nor the run of a cancelled `create` leave alone; the next one works."""
    async with backend_on(redis_server.url) as backend:
        task = asyncio.create_task(backend.runs.create(new_run(), None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert await backend.runs.load("r1") is None
        assert (await backend.runs.create(new_run(), None)).created


async def test_answered_request_cannot_fail_any_more() -> None:
    """The first answer counts."""
    request = Request(b"", b"", 1, "commit", 1.0)
    request.answer(b"x")
    request.fail("late")
    request.answer(b"y")
    assert await request.future == b"x"
