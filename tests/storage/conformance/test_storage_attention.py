"""What needs an owner: the dead, the woken, the due; in bounded pages, each at most once per page."""

import pytest

from rewound.storage import Commit, Mail
from tests.storage.stores import HOUR, LEASE, REACTORS, Store, ended, head_of, needs_of, new_run, owned

pytestmark = pytest.mark.anyio

PAST = 1_000_000_000.0
FUTURE = 5_000_000_000.0


async def parked(store: Store, run_id: str = "r1", *, due: float = PAST, reactor: str = "Order") -> None:
    """Create a run that waits for its alarm, unowned."""
    claim = await owned(store.storage, run_id, reactor=reactor)
    await store.storage.append(Commit(claim, f"park-{run_id}", 1, [b"x"], due=due, release=True))


async def test_nothing_needs_attention_at_first(store: Store) -> None:
    """Runs of live nodes, parked runs and ended runs are left alone."""
    await owned(store.storage, "r1")
    await parked(store, "r2", due=FUTURE)
    await ended(store.storage, "r3")
    page = await store.storage.attention("b", REACTORS, LEASE)
    assert (page.needs, page.unknown, page.cursor) == ([], {}, None)


async def test_run_created_for_nobody_needs_an_owner(store: Store) -> None:
    """A queued run is woken, until it is claimed."""
    await store.storage.create(new_run(), None)
    await store.storage.join("b", LEASE)
    assert await needs_of(store.storage) == [("r1", "wake")]
    assert await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert await needs_of(store.storage) == []


async def test_runs_of_a_dead_node_need_an_owner(store: Store) -> None:
    """Promise 3: all its runs, and only its."""
    for run_id, node in (("r1", "a"), ("r2", "a"), ("r3", "c")):
        await owned(store.storage, run_id, node)
    await store.expire("a")
    assert sorted(await needs_of(store.storage)) == [("r1", "dead"), ("r2", "dead")]


async def test_runs_of_a_node_that_left_need_an_owner(store: Store) -> None:
    """`leave` without a release is a death."""
    await owned(store.storage)
    await store.storage.leave("a")
    assert await needs_of(store.storage) == [("r1", "dead")]


async def test_taken_over_run_needs_nothing_more(store: Store) -> None:
    """The claim ends the need."""
    await owned(store.storage)
    await store.expire("a")
    await store.storage.join("b", LEASE)
    assert await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert await needs_of(store.storage) == []


async def test_need_carries_the_head(store: Store) -> None:
    """The head is good for a claim at once."""
    await owned(store.storage)
    await store.expire("a")
    await store.storage.join("b", LEASE)
    page = await store.storage.attention("b", REACTORS, LEASE)
    [need] = page.needs
    assert need.head == await head_of(store.storage)
    assert await store.storage.claim(need.head, "b", "n2")


async def test_due_alarm_needs_an_owner(store: Store) -> None:
    """A parked run whose time has come."""
    await parked(store, "r1", due=PAST)
    await parked(store, "r2", due=FUTURE)
    assert await needs_of(store.storage) == [("r1", "alarm")]


async def test_alarm_comes_due_with_time(store: Store) -> None:
    """Due times are the storage's time."""
    await parked(store, due=await store.storage.now() + 0.1)
    assert await needs_of(store.storage) == []
    await store.advance(0.2)
    assert await needs_of(store.storage) == [("r1", "alarm")]


async def test_due_alarm_moves_one_lease_ahead_and_comes_back(store: Store) -> None:
    """It is not returned everywhere at once, and not lost if its taker dies; the head keeps `due`."""
    await parked(store)
    assert await needs_of(store.storage, lease=0.1) == [("r1", "alarm")]
    assert await needs_of(store.storage, "c", lease=0.1) == []
    assert (await head_of(store.storage)).due == PAST
    await store.advance(0.2)
    assert await needs_of(store.storage, "c") == [("r1", "alarm")]


async def test_fired_alarm_is_removed(store: Store) -> None:
    """`due=None` in the append that records the firing ends it."""
    await parked(store)
    await store.storage.join("b", LEASE)
    claim = await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert claim is not None
    await store.storage.append(Commit(claim, "c9", 2, [b"fired"], due=None, release=True))
    assert await needs_of(store.storage) == []


async def test_moved_alarm_can_be_set_anew(store: Store) -> None:
    """A new due time counts, not the place to which the old one was moved."""
    await parked(store)
    assert await needs_of(store.storage) == [("r1", "alarm")]
    await store.storage.join("b", LEASE)
    claim = await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert claim is not None
    await store.storage.append(Commit(claim, "c9", 2, [b"again"], due=PAST + 1, release=True))
    assert await needs_of(store.storage) == [("r1", "alarm")]


async def test_alarm_of_a_live_owner_is_its_own(store: Store) -> None:
    """The owner is nudged; another node is not, and does not move the alarm."""
    claim = await owned(store.storage, node="a")
    await store.storage.append(Commit(claim, "c1", 1, due=PAST))
    assert await needs_of(store.storage, "b") == []
    assert await needs_of(store.storage, "a") == [("r1", "alarm")]


async def test_several_needs_of_one_run_are_one(store: Store) -> None:
    """Each run at most once per page."""
    await parked(store)
    await store.storage.post("r1", Mail("m1", b"x", "c"))
    assert await needs_of(store.storage) == [("r1", "wake")]


async def test_unknown_reactors_are_counted_and_left(store: Store) -> None:
    """A9: runs of other reactors are seen, reported, and neither returned nor moved."""
    await store.storage.create(new_run("r1", reactor="Other"), None)
    await parked(store, "r2", reactor="Other")
    await owned(store.storage, "r3", "dead", reactor="Third")
    await store.expire("dead")
    page = await store.storage.attention("b", REACTORS, LEASE)
    assert (page.needs, page.unknown) == ([], {"Other": 2, "Third": 1})
    theirs = await store.storage.attention("c", frozenset({"Other", "Third"}), LEASE)
    assert sorted(need.head.run_id for need in theirs.needs) == ["r1", "r2", "r3"]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_pages_hold_everything_once(store: Store, limit: int) -> None:
    """Through all pages each run is returned, whatever the reason and the page's size."""
    for number in range(3):
        await owned(store.storage, f"dead{number}", "dead")
        await store.storage.create(new_run(f"wake{number}"), None)
        await parked(store, f"alarm{number}", due=PAST + number)
    await store.expire("dead")
    found = await needs_of(store.storage, limit=limit)
    assert sorted(found) == sorted(
        (f"{reason}{number}", reason) for reason in ("dead", "wake", "alarm") for number in range(3)
    )


@pytest.mark.parametrize("limit", [1, 2])
async def test_pages_are_bounded(store: Store, limit: int) -> None:
    """A page never holds more than its limit, known or not."""
    for number in range(5):
        await store.storage.create(new_run(f"r{number}", reactor=("Order", "Other")[number % 2]), None)
    page = await store.storage.attention("b", REACTORS, LEASE, None, limit)
    assert len(page.needs) + sum(page.unknown.values()) <= limit
    assert page.cursor is not None


async def test_expired_runs_need_nothing(store: Store) -> None:
    """Promise 4: entries of a run that is gone are stale, and dropped on sight."""
    claim = await owned(store.storage)
    last = Commit(claim, "c1", 1, [b"x"], terminal=True, due=PAST, release=True, wake=True, retention=0.1)
    await store.storage.append(last)
    await store.advance(0.2)
    assert await needs_of(store.storage) == []
    await store.storage.purge()
    assert await needs_of(store.storage) == []


async def test_scan_finds_its_end_and_loses_nothing(store: Store) -> None:
    """After a scan through all pages every need is there."""
    for number in range(5):
        await store.storage.create(new_run(f"r{number}"), None)
    await owned(store.storage, "owned", "dead")
    await parked(store, "parked")
    await store.expire("dead")
    cursor = await store.storage.scan(None, 2)
    while cursor is not None:
        cursor = await store.storage.scan(cursor, 2)
    expected = [("owned", "dead"), ("parked", "alarm"), *((f"r{number}", "wake") for number in range(5))]
    assert sorted(await needs_of(store.storage)) == expected


async def test_retained_run_with_mail_needs_an_owner(store: Store) -> None:
    """Undo of an ended run that waits to be acknowledged."""
    await ended(store.storage, retain=True)
    await store.storage.post("r1", Mail("m1", b"undo", "c"))
    assert await needs_of(store.storage) == [("r1", "wake")]


async def test_released_run_is_not_its_dead_owners(store: Store) -> None:
    """Runs that were let go before the end of their node need nobody."""
    claim = await owned(store.storage)
    assert await store.storage.release(claim, retention=HOUR)
    await store.expire("a")
    assert await needs_of(store.storage) == []
