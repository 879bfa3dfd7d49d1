"""Appends: expected length, commit id, and what they change in the head (promises 1 and 2)."""

import anyio
import pytest

from rewound.errors import ClaimLost, JournalMismatch
from rewound.storage import Appended, Claim, Commit
from tests.storage.stores import HOUR, Store, ended, head_of, owned

pytestmark = pytest.mark.anyio


async def test_append_adds_records_in_order(store: Store) -> None:
    """Records stand in the order of the appends and within each."""
    claim = await owned(store.storage)
    assert await store.storage.append(Commit(claim, "c1", 1, [b"a", b"b"])) == Appended(3)
    assert await store.storage.append(Commit(claim, "c2", 3, [b"c"])) == Appended(4)
    journal = await store.storage.load("r1")
    assert journal is not None
    assert journal.records == [b"0", b"a", b"b", b"c"]
    assert (journal.head.length, journal.head.commit) == (4, "c2")


async def test_empty_record_is_kept(store: Store) -> None:
    """Records are opaque; one of no bytes is one."""
    claim = await owned(store.storage)
    assert await store.storage.append(Commit(claim, "c1", 1, [b""])) == Appended(2)
    journal = await store.storage.load("r1")
    assert journal is not None
    assert journal.records == [b"0", b""]


async def test_append_keeps_what_it_does_not_name(store: Store) -> None:
    """Without a status, an end or an alarm those of before stay."""
    claim = await owned(store.storage)
    await store.storage.append(Commit(claim, "c1", 1, status="waiting", due=5e9))
    await store.storage.append(Commit(claim, "c2", 1, [b"x"]))
    head = await head_of(store.storage)
    assert (head.status, head.terminal, head.due) == ("waiting", False, 5e9)


async def test_append_updates_the_time_of_the_head(store: Store) -> None:
    """`updated` is the time of the newest append; `created` stays."""
    claim = await owned(store.storage)
    before = await head_of(store.storage)
    await store.advance(0.05)
    await store.storage.append(Commit(claim, "c1", 1, [b"x"]))
    after = await head_of(store.storage)
    assert after.updated > before.updated
    assert after.created == before.created


async def test_repeated_append_is_stored_once(store: Store) -> None:
    """Promise 2: the id at the head means that only the answer was lost."""
    claim = await owned(store.storage)
    first = await store.storage.append(Commit(claim, "c1", 1, [b"x"]))
    assert await store.storage.append(Commit(claim, "c1", 1, [b"x"])) == first
    assert (await head_of(store.storage)).length == 2


async def test_repeated_append_that_released_is_recognised(store: Store) -> None:
    """Promise 2 holds for a release: the repeat is told that it released."""
    claim = await owned(store.storage)
    last = Commit(claim, "c1", 1, [b"x"], release=True)
    first = await store.storage.append(last)
    assert first == Appended(2, released=True)
    assert await store.storage.append(last) == first


@pytest.mark.parametrize("expected", [0, 2])
async def test_unexpected_length_is_refused(store: Store, expected: int) -> None:
    """Promise 2: an owner that expects another journal than storage has writes nothing."""
    claim = await owned(store.storage)
    with pytest.raises(JournalMismatch, match="r1"):
        await store.storage.append(Commit(claim, "c1", expected, [b"x"], status="odd", due=1.0))
    head = await head_of(store.storage)
    assert (head.length, head.status, head.due, head.commit) == (1, "running", None, "create-r1")


async def test_missing_run_is_refused(store: Store) -> None:
    """Promise 2: no head, no append."""
    with pytest.raises(JournalMismatch, match="gone"):
        await store.storage.append(Commit(Claim("gone", "a", 1, "n"), "c1", 1, [b"x"]))
    assert await store.storage.load("gone") is None


async def test_released_run_is_not_written(store: Store) -> None:
    """Promise 1: whoever gave the claim up writes nothing more."""
    claim = await owned(store.storage)
    assert await store.storage.release(claim, retention=HOUR)
    with pytest.raises(ClaimLost):
        await store.storage.append(Commit(claim, "c1", 1, [b"x"]))


async def test_refused_append_does_not_disturb_others(store: Store) -> None:
    """Appends that travel together succeed and fail by themselves."""
    claims = [await owned(store.storage, f"r{number}") for number in range(6)]
    refused: list[int] = []

    async def append(number: int) -> None:
        try:
            await store.storage.append(Commit(claims[number], "c1", 1 + number % 2, [b"x"]))
        except JournalMismatch:
            refused.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(append, number)
    assert sorted(refused) == [1, 3, 5]
    assert [(await head_of(store.storage, f"r{number}")).length for number in range(6)] == [2, 1, 2, 1, 2, 1]


async def test_many_runs_append_at_once(store: Store) -> None:
    """Answers reach their callers: each is told the length of its own journal."""
    claims = {number: await owned(store.storage, f"r{number}", records=number) for number in range(1, 20)}
    lengths: dict[int, int] = {}

    async def append(number: int) -> None:
        done = await store.storage.append(Commit(claims[number], "c1", number, [b"x"]))
        lengths[number] = done.length

    async with anyio.create_task_group() as group:
        for number in claims:
            group.start_soon(append, number)
    assert lengths == {number: number + 1 for number in claims}


async def test_end_is_recorded_in_the_head(store: Store) -> None:
    """An append may end the run; it stays claimed unless released."""
    claim = await owned(store.storage)
    await store.storage.append(Commit(claim, "c1", 1, [b"x"], status="completed", terminal=True))
    head = await head_of(store.storage)
    assert (head.status, head.terminal, head.node, head.expires) == ("completed", True, "a", None)


async def test_ended_run_can_be_reopened(store: Store) -> None:
    """The claim of an ended run may append, and take the end back."""
    await ended(store.storage)
    claim = await store.storage.claim(await head_of(store.storage), "a", "n2")
    assert claim is not None
    await store.storage.append(Commit(claim, "c9", 2, [b"undo"], status="undoing", terminal=False))
    head = await head_of(store.storage)
    assert (head.status, head.terminal, head.expires, head.length) == ("undoing", False, None, 3)
    assert await store.storage.release(claim, retention=0.0)
    assert (await head_of(store.storage)).expires is None


async def test_cancelled_append_can_be_repeated(store: Store) -> None:
    """Promise 7: a cancelled append happened or not; its repeat makes it so, once."""
    claim = await owned(store.storage)
    commit = Commit(claim, "c1", 1, [b"x"])
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.storage.append(commit)
    assert await store.storage.append(commit) == Appended(2)


async def test_cancelled_calls_never_get_each_others_answers(store: Store) -> None:
    """Promise 7, lesson 40: with half of the callers cancelled, the others get their own answers."""
    for number in range(10):
        await owned(store.storage, f"r{number}")
    answers: dict[int, str] = {}
    scopes = [anyio.CancelScope() for _ in range(10)]

    async def load(number: int) -> None:
        with scopes[number]:
            answers[number] = (await head_of(store.storage, f"r{number}")).run_id

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(load, number)
        await anyio.lowlevel.checkpoint()
        for scope in scopes[::2]:
            scope.cancel()
    assert {answers[number] for number in range(1, 10, 2)} == {f"r{number}" for number in range(1, 10, 2)}
    assert all(run_id == f"r{number}" for number, run_id in answers.items())
