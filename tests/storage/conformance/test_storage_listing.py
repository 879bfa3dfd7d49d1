"""Listings: newest first, filtered, in pages that new runs do not shift (lesson 34)."""

import pytest

from rewound.errors import InputError
from rewound.storage import Commit, Query
from tests.storage.stores import Store, listed, new_run, owned

pytestmark = pytest.mark.anyio


async def made(store: Store, *run_ids: str, reactor: str = "Order") -> None:
    """Create runs one after the other, unowned, at different times."""
    for run_id in run_ids:
        await store.storage.create(new_run(run_id, reactor=reactor), None)
        await store.advance(0.002)


async def test_nothing_to_list(store: Store) -> None:
    """An empty store has one empty page."""
    page = await store.storage.runs(Query())
    assert (page.heads, page.cursor) == ([], None)


async def test_newest_run_is_first(store: Store) -> None:
    """The order is that of creation, whatever the ids are."""
    await made(store, "b", "a", "c")
    assert await listed(store.storage) == ["c", "a", "b"]


async def test_listing_carries_heads(store: Store) -> None:
    """A row is the run's head as it is now."""
    claim = await owned(store.storage)
    await store.storage.append(Commit(claim, "c1", 1, [b"x"], status="waiting", due=5e9))
    page = await store.storage.runs(Query())
    journal = await store.storage.load("r1")
    assert journal is not None
    assert page.heads == [journal.head]


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
async def test_pages_hold_every_run_once(store: Store, limit: int) -> None:
    """No page is longer than its limit; together they hold everything."""
    await made(store, "r1", "r2", "r3", "r4", "r5")
    first = await store.storage.runs(Query(), None, limit)
    assert len(first.heads) == limit
    assert await listed(store.storage, limit=limit) == ["r5", "r4", "r3", "r2", "r1"]


async def test_runs_added_meanwhile_do_not_shift_the_pages(store: Store) -> None:
    """Lesson 34: no row is dropped or repeated."""
    await made(store, "r1", "r2", "r3", "r4")
    found: list[str] = []
    cursor = None
    for number in range(10):
        page = await store.storage.runs(Query(), cursor, 1)
        found += [head.run_id for head in page.heads]
        cursor = page.cursor
        if cursor is None:
            break
        await made(store, f"new{number}")
    assert found == ["r4", "r3", "r2", "r1"]


async def test_runs_of_one_instant_are_listed_once(virtual_store: Store) -> None:
    """Equal creation times do not confuse the cursor."""
    for number in range(5):
        await virtual_store.storage.create(new_run(f"r{number}"), None)
    assert await listed(virtual_store.storage, limit=2) == ["r4", "r3", "r2", "r1", "r0"]


async def test_listing_by_reactor(store: Store) -> None:
    """Only runs of that reactor."""
    await made(store, "r1", "r2")
    await made(store, "r3", reactor="Other")
    assert await listed(store.storage, Query(reactor="Order")) == ["r2", "r1"]
    assert await listed(store.storage, Query(reactor="Nobody")) == []


async def test_listing_by_status_follows_the_status(store: Store) -> None:
    """A run is listed under its newest status, and under no other."""
    await made(store, "r1")
    claim = await owned(store.storage, "r2")
    assert await listed(store.storage, Query(status="running")) == ["r2", "r1"]
    await store.storage.append(Commit(claim, "c1", 1, [b"x"], status="waiting"))
    assert await listed(store.storage, Query(status="running")) == ["r1"]
    assert await listed(store.storage, Query(status="waiting")) == ["r2"]


async def test_listing_by_status_and_reactor(store: Store) -> None:
    """Both must match, in pages that still find everything."""
    await made(store, "r1", "r2")
    await made(store, "r3", reactor="Other")
    await made(store, "r4")
    claim = await owned(store.storage, "r5")
    await store.storage.append(Commit(claim, "c1", 1, status="waiting"))
    assert await listed(store.storage, Query(status="running", reactor="Order"), 1) == ["r4", "r2", "r1"]


async def test_foreign_cursor_is_the_callers_mistake(store: Store) -> None:
    """A cursor that no listing gave is named."""
    with pytest.raises(InputError, match="cursor"):
        await store.storage.runs(Query(), "nonsense")
