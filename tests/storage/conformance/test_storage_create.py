"""Creating and loading runs (A7, lesson 35)."""

import anyio
import pytest

from rewound.storage import Created, Journal
from tests.storage.stores import LEASE, Store, head_of, new_run, owned

pytestmark = pytest.mark.anyio


async def test_created_run_is_claimed_by_its_node(store: Store) -> None:
    """`create` for a node gives the claim with it, at epoch 1."""
    await store.storage.join("a", LEASE)
    made = await store.storage.create(new_run("r1", key="k1", records=2), "a")
    assert made.created
    assert made.claim is not None
    assert (made.claim.run_id, made.claim.node, made.claim.epoch) == ("r1", "a", 1)


async def test_created_head_says_what_was_created(store: Store) -> None:
    """The head carries every field of the new run, and nothing of an end, an alarm or mail."""
    await store.storage.join("a", LEASE)
    await store.storage.create(new_run("r1", key="k1", records=2), "a")
    head = await head_of(store.storage)
    assert (head.reactor, head.status, head.format, head.fingerprint) == ("Order", "running", 1, "f1")
    assert (head.length, head.commit, head.node, head.key) == (2, "create-r1", "a", "k1")
    assert (head.terminal, head.retained, head.mail) == (False, False, 0)
    assert (head.due, head.expires) == (None, None)
    assert head.created == head.updated == pytest.approx(await store.storage.now(), abs=5)


async def test_second_create_finds_the_first(store: Store) -> None:
    """A7: one run per id; the second creator gets the head and no claim, and changes nothing."""
    await owned(store.storage)
    second = new_run("r1", records=3, commit="other", nonce="other")
    made = await store.storage.create(second, "b")
    assert made == Created(await head_of(store.storage), created=False, claim=None)
    assert made.head.length == 1


async def test_create_repeated_after_a_lost_answer_is_the_same_create(store: Store) -> None:
    """Promise 6: the repeat is told that it created the run, and gets the same claim."""
    await store.storage.join("a", LEASE)
    first = await store.storage.create(new_run(), "a")
    again = await store.storage.create(new_run(), "a")
    assert again == first


async def test_create_repeated_after_a_takeover_gives_no_claim(store: Store) -> None:
    """A repeat that comes too late is told that it created the run, but does not own it."""
    await owned(store.storage, node="a")
    await store.expire("a")
    assert await store.storage.claim(await head_of(store.storage), "b", "n2")
    again = await store.storage.create(new_run(), "a")
    assert (again.created, again.claim) == (True, None)


async def test_two_creators_at_once_have_one_run(store: Store) -> None:
    """Lesson 35: of many simultaneous creators with one id, exactly one creates."""
    await store.storage.join("a", LEASE)
    made: list[Created] = []

    async def create(number: int) -> None:
        run = new_run("r1", commit=f"c{number}", nonce=f"n{number}")
        made.append(await store.storage.create(run, "a"))

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(create, number)
    assert [one.created for one in made].count(True) == 1
    assert {one.head.commit for one in made} == {next(one for one in made if one.created).head.commit}


async def test_many_runs_are_created_at_once(store: Store) -> None:
    """Creations that travel together make one run each."""
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(store.storage.create, new_run(f"r{number}", records=number), None)
    lengths = [(await head_of(store.storage, f"r{number}")).length for number in range(20)]
    assert lengths == list(range(20))


async def test_run_created_for_nobody_is_unowned(store: Store) -> None:
    """`create` without a node claims nothing."""
    made = await store.storage.create(new_run(), None)
    assert made.created
    assert (made.claim, made.head.node) == (None, None)


async def test_load_reads_head_and_records(store: Store) -> None:
    """`load` gives both together, records in order."""
    await owned(store.storage, records=3)
    assert await store.storage.load("r1") == Journal(await head_of(store.storage), [b"0", b"1", b"2"])


@pytest.mark.parametrize(
    ("start", "limit", "expected"),
    [(1, None, [b"1", b"2"]), (0, 2, [b"0", b"1"]), (2, 5, [b"2"]), (3, None, []), (0, 0, [])],
)
async def test_load_reads_a_part(store: Store, start: int, limit: int | None, expected: list[bytes]) -> None:
    """`start` and `limit` cut the journal like a slice; the head is whole."""
    await owned(store.storage, records=3)
    journal = await store.storage.load("r1", start, limit)
    assert journal is not None
    assert (journal.records, journal.head.length) == (expected, 3)


async def test_unknown_run_is_none(store: Store) -> None:
    """There is nothing to load, post to, watch or acknowledge."""
    assert await store.storage.load("nope") is None
    assert await store.storage.watch("nope", "a") is None
    assert not await store.storage.acknowledge("nope", 1.0)


async def test_records_are_any_bytes(store: Store) -> None:
    """Records are opaque: empty, with zero bytes, not UTF-8, large."""
    records = [b"", b"\0\1", b"\xff\xfe", b"x" * 100_000]
    run = new_run()
    await store.storage.create(type(run)("r1", "Order", "running", 1, "f", records, "c", "n"), None)
    journal = await store.storage.load("r1")
    assert journal is not None
    assert journal.records == records


async def test_names_are_any_text(store: Store) -> None:
    """Ids, statuses and keys are any unicode, also what a server's protocol or SQL would read."""
    odd = "é{x}' ; -- \n% 漢"
    await store.storage.join(odd, LEASE)
    await store.storage.create(new_run(odd, status=odd, key=odd), odd)
    head = await head_of(store.storage, odd)
    assert (head.run_id, head.status, head.key, head.node) == (odd, odd, odd, odd)


async def test_other_storage_object_sees_the_run(store: Store) -> None:
    """What one node created, another loads at once."""
    other = await store.another()
    await owned(store.storage)
    assert await other.load("r1") == await store.storage.load("r1")
