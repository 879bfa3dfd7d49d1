"""Index and runs in two slots: what is stale is dropped in time, what is missing is found by a scan."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from rewound.errors import ClaimLost
from rewound.storage import Answer, Commit, Mail, Query, Storage
from rewound.storage.redis.keys import Keys, entry_name
from tests.servers import Server
from tests.storage.redis_stores import RedisStore, keys_without_expiry
from tests.storage.redis_tools import lose_index
from tests.storage.stores import HOUR, LEASE, REACTORS, ended, head_of, listed, needs_of, new_run, owned

pytestmark = pytest.mark.anyio

LONG_AGO = 1_000_000_000.0


@pytest.fixture
async def store(redis_server: Server, anyio_backend: Any) -> AsyncGenerator[RedisStore, None]:
    """Open a storage, with a client to look at, and break, what it keeps."""
    with redis_server.client() as client:
        store = RedisStore(redis_server.url, client)
        async with store.running():
            yield store


def keys_of(store: RedisStore) -> Keys:
    """Return the names of the store's keys."""
    return Keys(store.prefix)


async def members(store: RedisStore, key: bytes) -> list[str]:
    """Return the entries of an index, when all that was sent before has been done."""
    await store.storage.mail("nobody")
    return [name.decode() for name in store.client.zrange(key, 0, -1)]


# -- every key belongs to a live run, expires, or is an index


async def everything(storage: Storage) -> None:
    """Make every kind of key."""
    claim = await owned(storage, "live")
    await storage.watch("live", "a")
    await storage.post("live", Mail("m1", b"x", "b"))
    await storage.post("live", Mail("m2", b"x", "b"))
    await storage.append(Commit(claim, "c1", 1, [b"x"], due=5e9, answers=[Answer("m1", b"y")]))
    await storage.create(new_run("unowned"), None)
    await storage.post("nobody", Mail("m3", b"x", "b"))
    await ended(storage, "ended")
    await storage.watch("ended", "a")
    await storage.post("ended", Mail("m4", b"x", "b"))
    await ended(storage, "kept", retain=True)
    await storage.leave("a")


async def test_every_key_belongs_to_a_live_run_or_expires(store: RedisStore) -> None:
    """After everything that makes keys, no other is left; all keys of an ended run expire together."""
    await everything(store.storage)
    await store.storage.nodes()
    assert keys_without_expiry(store.client, store.prefix) == []
    run = keys_of(store).run("ended")
    times = [store.client.pttl(key) for key in run.all()]
    assert max(times) - min(times) < 100
    assert min(times) > 0


async def test_key_that_belongs_to_nothing_is_found(store: RedisStore) -> None:
    """The check above can fail."""
    await ended(store.storage)
    run = keys_of(store).run("r1")
    store.client.persist(run.journal)
    store.client.set(f"{store.prefix}:stray", "x")
    found = keys_without_expiry(store.client, store.prefix)
    assert sorted(found) == sorted([run.journal.decode(), f"{store.prefix}:stray"])


async def test_claim_of_an_ended_run_persists_all_its_keys(store: RedisStore) -> None:
    """A run that is reopened must not lose its journal half-way."""
    await ended(store.storage)
    await store.storage.watch("r1", "a")
    await store.storage.post("r1", Mail("m1", b"x", "b"))
    assert await store.storage.claim(await head_of(store.storage), "a", "again")
    assert [store.client.pttl(key) for key in keys_of(store).run("r1").all()] == [-1] * 4


async def test_expired_runs_leave_every_list(store: RedisStore) -> None:
    """`purge` counts a run once, and nothing of it stays in the index."""
    keys = keys_of(store)
    await ended(store.storage, "r1", retention=0.1)
    await ended(store.storage, "r2")
    assert await store.storage.purge() == 0
    await store.advance(0.2)
    assert await store.storage.purge() == 1
    assert await store.storage.purge() == 0
    assert await members(store, keys.every) == ["r2"]
    assert await members(store, keys.status("completed")) == ["r2"]
    assert await members(store, keys.reactor("Order")) == ["r2"]
    assert await members(store, keys.owner("a")) == []


async def test_run_that_was_reopened_is_not_purged(store: RedisStore) -> None:
    """An entry that its run outlived is dropped, or set to the run's new expiry."""
    keys = keys_of(store)
    await ended(store.storage, "r1", retention=0.3)
    claim = await store.storage.claim(await head_of(store.storage), "a", "again")
    assert claim is not None
    assert await store.storage.purge() == 0
    assert await members(store, keys.expiring) == []
    await store.storage.release(claim, retention=HOUR)
    store.client.zadd(keys.expiring, {entry_name("r1"): LONG_AGO})
    assert await store.storage.purge() == 0
    [name] = await members(store, keys.expiring)
    assert store.client.zscore(keys.expiring, name) == (await head_of(store.storage)).expires


async def test_run_created_while_its_old_rows_are_purged_stays_listed(store: RedisStore) -> None:
    """Rows that a purge removed from under a new run of the same id are put back."""
    keys = keys_of(store)
    await store.storage.create(new_run("r1"), None)
    store.client.zadd(keys.expiring, {entry_name("r1", "completed", "Order"): LONG_AGO})
    head = store.client.hgetall(keys.run("r1").head)
    store.client.delete(keys.run("r1").head)
    store.client.hset(keys.run("r1").head, mapping=head)
    assert await store.storage.purge() == 0
    assert await listed(store.storage) == ["r1"]


# -- stale entries


async def test_stale_entries_are_dropped_when_they_are_old(store: RedisStore) -> None:
    """An entry that its run does not confirm goes, once no write can be on its way any more."""
    keys = keys_of(store)
    await owned(store.storage)
    name = entry_name("r1", "other")
    store.client.zadd(keys.nodes, {"dead": LONG_AGO})
    for key in (keys.owner("dead"), keys.wake):
        store.client.zadd(key, {name: LONG_AGO, entry_name("gone", "x"): LONG_AGO})
    assert await needs_of(store.storage) == []
    assert await members(store, keys.owner("dead")) == []
    assert await members(store, keys.wake) == []
    assert await needs_of(store.storage) == []
    assert await members(store, keys.nodes) == ["a"]


async def test_young_entries_are_left_alone(store: RedisStore) -> None:
    """The write that needs an entry may come after it was looked at."""
    keys = keys_of(store)
    now = await store.storage.now()
    store.client.zadd(keys.nodes, {"dead": now})
    for key in (keys.owner("dead"), keys.wake, keys.every):
        store.client.zadd(key, {entry_name("r1", "x") if key != keys.every else "r1": now})
    assert await needs_of(store.storage) == []
    assert await listed(store.storage) == []
    for key in (keys.owner("dead"), keys.wake, keys.every):
        assert await members(store, key)


async def test_stale_alarm_comes_up_twice_before_it_goes(store: RedisStore) -> None:
    """A timer's score is when it is due, so its age is not known: a minute's delay stands in."""
    keys = keys_of(store)
    name = entry_name("r1", "c1")
    store.client.zadd(keys.timer, {name: LONG_AGO})
    assert await needs_of(store.storage) == []
    assert await members(store, keys.timer) == [name + "~"]
    assert store.client.zscore(keys.timer, name + "~") > await store.storage.now() + 50
    store.client.zadd(keys.timer, {name + "~": LONG_AGO})
    assert await needs_of(store.storage) == []
    assert await members(store, keys.timer) == []


async def test_alarm_that_was_suspected_wrongly_is_carried_out(store: RedisStore) -> None:
    """The write came after the first look: the second finds it true."""
    keys = keys_of(store)
    claim = await owned(store.storage)
    await store.storage.append(Commit(claim, "c1", 1, due=LONG_AGO, release=True))
    name = entry_name("r1", "c1")
    store.client.zrem(keys.timer, name)
    store.client.zadd(keys.timer, {name + "~": LONG_AGO})
    assert await needs_of(store.storage) == [("r1", "alarm")]


async def test_alarm_goes_to_one_of_two_nodes(store: RedisStore) -> None:
    """Whoever moves the entry first gets it."""
    keys = keys_of(store)
    claim = await owned(store.storage)
    await store.storage.append(Commit(claim, "c1", 1, due=LONG_AGO, release=True))
    other = await store.another()
    first = await store.storage.attention("b", REACTORS, LEASE)
    second = await other.attention("c", REACTORS, LEASE)
    assert (len(first.needs), len(second.needs)) == (1, 0)
    assert store.client.zscore(keys.timer, entry_name("r1", "c1")) > await other.now()


async def test_old_rows_without_a_run_are_dropped_from_lists(store: RedisStore) -> None:
    """A list drops what it cannot show."""
    keys = keys_of(store)
    store.client.zadd(keys.every, {"gone": LONG_AGO})
    assert await listed(store.storage) == []
    assert await members(store, keys.every) == []


async def test_row_of_another_status_is_not_shown(store: RedisStore) -> None:
    """A crash between index and run leaves a row too many, which is filtered out."""
    await owned(store.storage)
    store.client.zadd(keys_of(store).status("completed"), {"r1": LONG_AGO})
    assert await listed(store.storage, Query(status="completed")) == []


async def test_rows_of_one_instant_are_listed_once(store: RedisStore) -> None:
    """Equal times do not confuse the cursor, however small the pages."""
    keys = keys_of(store)
    for number in range(5):
        await store.storage.create(new_run(f"r{number}"), None)
        store.client.zadd(keys.every, {f"r{number}": LONG_AGO})
    assert await listed(store.storage, limit=1) == ["r4", "r3", "r2", "r1", "r0"]


async def test_page_of_a_rare_match_is_bounded(store: RedisStore) -> None:
    """A page may be short and still have a cursor; all pages together hold everything."""
    for number in range(25):
        await store.storage.create(new_run(f"r{number}", reactor="Other"), None)
    await store.storage.create(new_run("rare"), None)
    for number in range(25, 30):
        await store.storage.create(new_run(f"r{number}", reactor="Other"), None)
    query = Query(status="running", reactor="Order")
    page = await store.storage.runs(query, limit=2)
    assert [head.run_id for head in page.heads] == ["rare"]
    assert page.cursor is not None
    assert await listed(store.storage, query, limit=2) == ["rare"]


# -- order


async def test_scan_completes_a_lost_index(store: RedisStore, redis_server: Server) -> None:
    """Lists, owners, alarms, calls and expiries are found again from the runs alone."""
    await store.storage.join("b", LEASE)
    claim = await owned(store.storage, "parked")
    await store.storage.append(Commit(claim, "c1", 1, due=LONG_AGO, release=True))
    await store.storage.create(new_run("unowned"), None)
    await owned(store.storage, "owned", "dead")
    await ended(store.storage, "ended", retention=0.2)
    lose_index(redis_server, store.prefix)
    cursor = await store.storage.scan()
    while cursor is not None:
        cursor = await store.storage.scan(cursor)
    assert set(await listed(store.storage, Query(reactor="Order"))) == {"parked", "unowned", "owned", "ended"}
    assert await listed(store.storage, Query(status="completed")) == ["ended"]
    found = await needs_of(store.storage)
    assert sorted(found) == [("owned", "dead"), ("parked", "alarm"), ("unowned", "wake")]
    await store.advance(0.3)
    assert await store.storage.purge() == 1


async def test_ids_may_hold_anything(store: RedisStore) -> None:
    """Braces and separators in ids break neither keys nor entries."""
    run_id, nonce = 'a}b{c%"\x1f', "n}\x1f"
    await store.storage.join("b", LEASE)
    await store.storage.create(new_run(run_id, nonce=nonce), None)
    assert await needs_of(store.storage) == [(run_id, "wake")]
    claim = await store.storage.claim(await head_of(store.storage, run_id), "b", "x}{")
    assert claim is not None
    await store.storage.scan()
    assert await store.storage.append(Commit(claim, "c1", 1, [b"x"]))
    assert await needs_of(store.storage) == []


# -- what a write leaves behind in the index


async def test_repeated_key_leaves_no_row_of_the_second_call(store: RedisStore) -> None:
    """A `create` that found another run takes its own entries back."""
    keys = keys_of(store)
    await ended(store.storage)
    created = await store.storage.create(
        new_run("r1", reactor="Other", status="new", commit="second", nonce="second"), "b"
    )
    assert not created.created
    assert await members(store, keys.status("new")) == []
    assert await members(store, keys.reactor("Other")) == []
    assert await members(store, keys.owner("b")) == []
    assert await listed(store.storage) == ["r1"]


async def test_release_refused_for_mail_leaves_no_call(store: RedisStore) -> None:
    """The run keeps its owner, so nobody else needs to look at it, but for the mail."""
    keys = keys_of(store)
    claim = await owned(store.storage)
    await store.storage.post("r1", Mail("m1", b"x", "b"))
    assert not await store.storage.release(claim, retention=HOUR, wake=True)
    appended = await store.storage.append(Commit(claim, "c1", 1, [b"x"]))
    assert (appended.length, appended.mail) == (2, 1)
    assert await members(store, keys.wake) == [entry_name("r1", "m1")]
    assert await members(store, keys.expiring) == []
    await store.storage.append(Commit(claim, "c2", 2, answers=[Answer("m1", b"y")]))
    assert await members(store, keys.wake) == []
    assert 0 < store.client.ttl(keys.sent("m1")) <= 660


async def test_changed_alarm_leaves_no_old_one(store: RedisStore) -> None:
    """Only the newest alarm stands in the index, and none when it was removed."""
    keys = keys_of(store)
    claim = await owned(store.storage)
    await store.storage.append(Commit(claim, "c1", 1, due=5e9))
    await store.storage.append(Commit(claim, "c2", 1, due=6e9))
    assert await members(store, keys.timer) == [entry_name("r1", "c2")]
    await store.storage.append(Commit(claim, "c3", 1, due=None))
    assert await members(store, keys.timer) == []


async def test_refused_write_takes_nothing_back_that_another_needs(store: RedisStore) -> None:
    """A late repeat by an owner that was replaced does not remove the alarm that it had set."""
    keys = keys_of(store)
    claim = await owned(store.storage)
    await store.storage.release(claim, retention=HOUR, due=LONG_AGO, wake=True)
    again = await store.storage.claim(await head_of(store.storage), "a", "again")
    assert again is not None
    with pytest.raises(ClaimLost):
        await store.storage.release(claim, retention=HOUR, due=LONG_AGO, wake=True)
    assert await members(store, keys.timer) == [entry_name("r1", claim.nonce)]
    await store.storage.release(again, retention=HOUR)
    assert ("r1", "alarm") in await needs_of(store.storage)
