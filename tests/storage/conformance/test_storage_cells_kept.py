"""How long cells are kept: as long as their run, to the moment."""

import pytest

from rewound.storage import Answer, Cells, Commit, Mail, Space, Storage
from tests.storage.stores import Store, head_of, new_run, owned

pytestmark = pytest.mark.anyio

EMPTY = Space(0, b"", {})


async def ended_with_cells(storage: Storage, retention: float) -> None:
    """Leave a run behind that has ended, with cells in two spaces."""
    claim = await owned(storage)
    for space in ("map", "other"):
        await storage.put(Cells(claim, space, "w0", 0, {0: b"a", 250: b"b"}, b"head"))
    end = Commit(claim, "end", 1, [b"x"], terminal=True, release=True, retention=retention)
    assert (await storage.append(end)).released


async def test_cells_leave_with_their_run(store: Store) -> None:
    """An expired run has none, and one that is created under its id starts without."""
    await ended_with_cells(store.storage, 0.1)
    await store.advance(0.15)
    assert await store.storage.space("r1", "map") is None
    created = await store.storage.create(new_run(commit="again"), "a")
    assert created.claim is not None
    assert await store.storage.space("r1", "map", 0, 300) == EMPTY
    assert await store.storage.put(Cells(created.claim, "map", "w0", 0, {250: b"new"})) == 1
    assert await store.storage.space("r1", "map", 0, 300) == Space(1, b"", {250: b"new"})


async def test_purge_removes_cells(store: Store) -> None:
    """The run's id may be used again, and nothing of the old run is there."""
    await ended_with_cells(store.storage, 0.1)
    await owned(store.storage, "r2")
    await store.advance(0.15)
    assert await store.storage.purge() == 1
    assert (await store.storage.create(new_run(commit="again"), "a")).created
    assert await store.storage.space("r1", "map", 0, 300) == EMPTY


async def test_claimed_again_a_run_keeps_its_cells(store: Store) -> None:
    """An ended run that is reopened, to undo it, has its cells for as long as it is claimed."""
    await ended_with_cells(store.storage, 0.8)
    claim = await store.storage.claim(await head_of(store.storage), "a", "n2")
    assert claim is not None
    await store.advance(0.9)
    assert await store.storage.put(Cells(claim, "map", "w1", 1, {1: b"undone"})) == 2
    page = await store.storage.space("r1", "map", 0, 300)
    assert page == Space(2, b"head", {0: b"a", 1: b"undone", 250: b"b"})


async def test_retained_run_keeps_its_cells_until_acknowledged(store: Store) -> None:
    """Then they leave with it."""
    claim = await owned(store.storage)
    await store.storage.put(Cells(claim, "map", "w0", 0, {0: b"a"}))
    await store.storage.append(Commit(claim, "end", 1, terminal=True, retain=True))
    assert await store.storage.release(claim, retention=0.01)
    await store.advance(0.05)
    assert await store.storage.space("r1", "map") == Space(1, b"", {0: b"a"})
    assert await store.storage.acknowledge("r1", 0.1)
    await store.advance(0.15)
    assert await store.storage.space("r1", "map") is None


async def test_released_run_with_cells_answers_its_mail(store: Store) -> None:
    """The last append of a run with cells may answer mail, end the run and release it."""
    claim = await owned(store.storage)
    await store.storage.put(Cells(claim, "map", "w0", 0, {0: b"a"}))
    for mail_id in ("m1", "m2"):
        await store.storage.post("r1", Mail(mail_id, b"x", "b"))
    answers = [Answer("m1", b"one"), Answer("m2", b"two")]
    last = Commit(claim, "end", 1, [b"x"], terminal=True, answers=answers, release=True)
    done = await store.storage.append(last)
    assert (done.length, done.released, done.mail) == (2, True, 0)
    assert await store.storage.append(last) == done
    assert [await store.storage.reply("m1"), await store.storage.reply("m2")] == [b"one", b"two"]
    head = await head_of(store.storage)
    assert (head.terminal, head.node, head.expires is None) == (True, None, False)
