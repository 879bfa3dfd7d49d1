"""Claims: a compare-and-set on epoch and nonce, from the dead or from nobody only (promise 1)."""

import anyio
import pytest

from rewound.errors import ClaimLost
from rewound.storage import Claim, Commit
from tests.storage.stores import HOUR, LEASE, Store, ended, head_of, new_run, owned

pytestmark = pytest.mark.anyio


async def test_unowned_run_can_be_claimed(store: Store) -> None:
    """The claim has the next epoch and the claimer's nonce, and stands in the head."""
    await store.storage.create(new_run(), None)
    await store.storage.join("b", LEASE)
    before = await head_of(store.storage)
    claim = await store.storage.claim(before, "b", "n2")
    assert claim is not None
    assert claim == Claim("r1", "b", before.epoch + 1, "n2")
    head = await head_of(store.storage)
    assert (head.node, head.epoch, head.nonce) == ("b", claim.epoch, "n2")


async def test_run_of_a_live_node_cannot_be_claimed(store: Store) -> None:
    """A live owner keeps its run."""
    await owned(store.storage, node="a")
    assert await store.storage.claim(await head_of(store.storage), "b", "n2") is None
    assert (await head_of(store.storage)).node == "a"


async def test_run_of_a_dead_node_can_be_claimed(store: Store) -> None:
    """Promise 3: whoever saw the lease expired may claim."""
    await owned(store.storage, node="a")
    await store.expire("a")
    claim = await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert claim == Claim("r1", "b", 2, "n2")


async def test_claim_from_an_old_head_fails(store: Store) -> None:
    """Compare-and-set: a head that was read before another claim wins nothing."""
    await store.storage.create(new_run(), None)
    old = await head_of(store.storage)
    assert await store.storage.claim(old, "a", "n1")
    assert await store.storage.claim(old, "b", "n2") is None


async def test_missing_run_cannot_be_claimed(store: Store) -> None:
    """A run that is gone has no claim."""
    await ended(store.storage, retention=0.1)
    head = await head_of(store.storage)
    await store.advance(0.2)
    assert await store.storage.claim(head, "b", "n2") is None


async def test_claim_repeated_after_a_lost_answer_is_the_same_claim(store: Store) -> None:
    """Promise 6: the nonce tells the repeat, though the head changed by its first copy."""
    await store.storage.create(new_run(), None)
    await store.storage.join("a", LEASE)
    head = await head_of(store.storage)
    first = await store.storage.claim(head, "a", "n1")
    assert first is not None
    assert await store.storage.claim(head, "a", "n1") == first


async def test_two_claimers_have_one_winner(store: Store) -> None:
    """Lesson 3: of many nodes that saw the owner dead, one wins."""
    await owned(store.storage, node="a")
    await store.expire("a")
    head = await head_of(store.storage)
    storages = [store.storage, await store.another()]
    won: list[Claim | None] = []

    async def claim(number: int) -> None:
        await storages[number % 2].join(f"n{number}", LEASE)
        won.append(await storages[number % 2].claim(head, f"n{number}", f"x{number}"))

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(claim, number)
    [winner] = [claim for claim in won if claim is not None]
    assert (await head_of(store.storage)).node == winner.node


async def test_claimed_run_does_not_expire(store: Store) -> None:
    """An ended run is persisted by the claim that reopens it, and expires again after its release."""
    await ended(store.storage, retention=0.1)
    claim = await store.storage.claim(await head_of(store.storage), "a", "n2")
    assert claim is not None
    await store.advance(0.2)
    assert (await head_of(store.storage)).expires is None
    assert await store.storage.release(claim, retention=HOUR)
    assert (await head_of(store.storage)).expires is not None


async def test_late_writer_is_refused(store: Store) -> None:
    """Lesson 2: after a takeover the old owner writes and releases nothing."""
    old = await owned(store.storage, node="a")
    await store.expire("a")
    assert await store.storage.claim(await head_of(store.storage), "b", "n2")
    with pytest.raises(ClaimLost, match="r1"):
        await store.storage.append(Commit(old, "late", 1, [b"late"]))
    with pytest.raises(ClaimLost, match="r1"):
        await store.storage.release(old, retention=HOUR)
    head = await head_of(store.storage)
    assert (head.length, head.node) == (1, "b")


async def test_epoch_alone_is_not_a_claim(store: Store) -> None:
    """Promise 1 compares the nonce, too: a failover may give one epoch to two claimers."""
    claim = await owned(store.storage, node="a")
    forged = Claim("r1", "b", claim.epoch, "other")
    with pytest.raises(ClaimLost):
        await store.storage.append(Commit(forged, "c1", 1, [b"x"]))
    with pytest.raises(ClaimLost):
        await store.storage.release(forged, retention=HOUR)


async def test_nonce_alone_is_not_a_claim(store: Store) -> None:
    """Promise 1 compares the epoch, too."""
    claim = await owned(store.storage, node="a")
    with pytest.raises(ClaimLost):
        await store.storage.append(Commit(Claim("r1", "a", claim.epoch + 1, claim.nonce), "c1", 1, [b"x"]))
