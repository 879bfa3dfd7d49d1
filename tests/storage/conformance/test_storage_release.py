"""Giving a claim up, and how long an ended run is kept."""

import pytest

from rewound.errors import ClaimLost
from rewound.storage import Answer, Appended, Claim, Commit, Mail
from tests.storage.stores import HOUR, Store, ended, head_of, listed, needs_of, new_run, owned

pytestmark = pytest.mark.anyio


async def test_released_run_has_no_owner(store: Store) -> None:
    """A release leaves everything but the owner."""
    claim = await owned(store.storage)
    assert await store.storage.release(claim, retention=HOUR)
    head = await head_of(store.storage)
    assert (head.node, head.length, head.status, head.expires) == (None, 1, "running", None)


async def test_release_repeated_after_a_lost_answer_is_harmless(store: Store) -> None:
    """Promise 6 for `release`."""
    claim = await owned(store.storage)
    assert await store.storage.release(claim, retention=HOUR)
    assert await store.storage.release(claim, retention=HOUR)


async def test_release_with_wake_needs_an_owner(store: Store) -> None:
    """`wake` makes other nodes take the run over at once; without it nobody does."""
    for run_id, wake in (("r1", True), ("r2", False)):
        claim = await owned(store.storage, run_id)
        assert await store.storage.release(claim, retention=HOUR, wake=wake)
    assert await needs_of(store.storage) == [("r1", "wake")]


async def test_append_with_release_and_wake_needs_an_owner(store: Store) -> None:
    """The same in one operation with the last records."""
    for run_id, wake in (("r1", True), ("r2", False)):
        claim = await owned(store.storage, run_id)
        last = Commit(claim, "c1", 1, [b"x"], release=True, wake=wake)
        assert await store.storage.append(last) == Appended(2, released=True)
    assert await needs_of(store.storage) == [("r1", "wake")]


async def test_release_sets_keeps_and_removes_the_alarm(store: Store) -> None:
    """`due` of a release works as that of an append."""
    for due, run_id in ((5e9, "r1"), (None, "r2")):
        claim = await owned(store.storage, run_id)
        await store.storage.append(Commit(claim, "c1", 1, due=4e9))
        assert await store.storage.release(claim, retention=HOUR, due=due)
        assert (await head_of(store.storage, run_id)).due == due
    claim = await owned(store.storage, "r3")
    await store.storage.append(Commit(claim, "c1", 1, due=4e9))
    assert await store.storage.release(claim, retention=HOUR)
    assert (await head_of(store.storage, "r3")).due == 4e9


async def test_unread_mail_blocks_release(store: Store) -> None:
    """Promise 5: the claim is kept, in both ways to release."""
    claim = await owned(store.storage)
    await store.storage.post("r1", Mail("m1", b"undo", "b"))
    assert not await store.storage.release(claim, retention=HOUR)
    last = Commit(claim, "c1", 1, [b"x"], release=True)
    assert await store.storage.append(last) == Appended(2, released=False, mail=1)
    assert await store.storage.append(last) == Appended(2, released=False, mail=1)
    assert (await head_of(store.storage)).node == "a"


async def test_append_that_answers_the_last_mail_releases(store: Store) -> None:
    """Mail counts as read in the append that answers it."""
    claim = await owned(store.storage)
    await store.storage.post("r1", Mail("m1", b"undo", "b"))
    [mail] = await store.storage.mail("r1")
    answers = [Answer(mail.id, b"done")]
    done = await store.storage.append(Commit(claim, "c1", 1, [b"x"], answers=answers, release=True))
    assert done == Appended(2, released=True)


async def test_ended_run_expires_after_its_retention(store: Store) -> None:
    """Released after its end, a run is kept for `retention`, and then is gone from everywhere."""
    await ended(store.storage, "r1", retention=0.1)
    await ended(store.storage, "r2", retention=HOUR)
    head = await head_of(store.storage, "r2")
    assert head.expires == pytest.approx(await store.storage.now() + HOUR, abs=5)
    await store.advance(0.2)
    assert await store.storage.load("r1") is None
    assert await store.storage.post("r1", Mail("m1", b"", "b")) is None
    assert await listed(store.storage) == ["r2"]


async def test_live_run_never_expires(store: Store) -> None:
    """`retention` matters for ended runs only."""
    claim = await owned(store.storage)
    assert await store.storage.release(claim, retention=0.0)
    await store.advance(0.1)
    assert (await head_of(store.storage)).expires is None


async def test_release_of_an_expired_run_is_harmless(store: Store) -> None:
    """A repeat that comes after the run was purged has nothing to give up."""
    claim = await ended(store.storage, retention=0.0)
    await store.advance(0.1)
    assert await store.storage.release(claim, retention=0.0)


async def test_id_of_an_expired_run_is_free(store: Store) -> None:
    """A7: after its retention a key may be used again, purged or not, and the old claim is worthless."""
    old = await ended(store.storage, retention=0.0)
    await store.advance(0.1)
    made = await store.storage.create(new_run("r1", commit="again", nonce="again"), "a")
    assert made.created
    assert made.head.length == 1
    with pytest.raises(ClaimLost):
        await store.storage.append(Commit(old, "late", 1, [b"x"]))


async def test_purge_removes_expired_runs_in_bounded_steps(store: Store) -> None:
    """`purge` says how many it removed, at most `limit`, until none is left."""
    for number in range(3):
        await ended(store.storage, f"r{number}", retention=0.0)
    await ended(store.storage, "kept", retention=HOUR)
    await store.advance(0.1)
    assert [await store.storage.purge(2), await store.storage.purge(2), await store.storage.purge(2)] == [
        2,
        1,
        0,
    ]
    assert await listed(store.storage) == ["kept"]


async def test_retained_run_is_kept_until_acknowledged(store: Store) -> None:
    """A run with rollback failures does not expire until somebody saw it."""
    await ended(store.storage, retention=0.1, retain=True)
    await store.advance(0.2)
    head = await head_of(store.storage)
    assert (head.retained, head.expires) == (True, None)
    assert await store.storage.acknowledge("r1", 0.1)
    assert (await head_of(store.storage)).retained is False
    await store.advance(0.2)
    assert await store.storage.load("r1") is None


async def test_acknowledging_twice_does_not_extend(store: Store) -> None:
    """Promise 6 for `acknowledge`: the repeat is true, and changes nothing."""
    await ended(store.storage, retain=True)
    assert await store.storage.acknowledge("r1", HOUR)
    first = await head_of(store.storage)
    assert await store.storage.acknowledge("r1", 2 * HOUR)
    assert await head_of(store.storage) == first


async def test_live_run_cannot_be_acknowledged(store: Store) -> None:
    """Only an ended run can."""
    await owned(store.storage)
    assert not await store.storage.acknowledge("r1", HOUR)


async def test_claimed_run_is_acknowledged_and_expires_from_its_release(store: Store) -> None:
    """Acknowledged while claimed, it does not expire before it is released."""
    await ended(store.storage, retain=True)
    claim = await store.storage.claim(await head_of(store.storage), "a", "n2")
    assert claim is not None
    assert await store.storage.acknowledge("r1", 0.1)
    await store.advance(0.2)
    head = await head_of(store.storage)
    assert (head.retained, head.expires) == (False, None)
    assert await store.storage.release(claim, retention=HOUR)
    assert (await head_of(store.storage)).expires is not None


async def test_retained_run_stays_retained_through_claims(store: Store) -> None:
    """An append that does not end the run anew keeps it retained; release does not let it expire."""
    await ended(store.storage, retain=True)
    claim = await store.storage.claim(await head_of(store.storage), "a", "n2")
    assert claim is not None
    await store.storage.append(Commit(claim, "c9", 2))
    assert await store.storage.release(claim, retention=0.0)
    head = await head_of(store.storage)
    assert (head.retained, head.expires) == (True, None)


async def test_ended_run_can_be_retained_later(store: Store) -> None:
    """An append that leaves the end as it is may retain the run."""
    await ended(store.storage)
    claim = await store.storage.claim(await head_of(store.storage), "a", "n2")
    assert claim is not None
    await store.storage.append(Commit(claim, "c9", 2, [b"x"], retain=True, release=True))
    head = await head_of(store.storage)
    assert (head.retained, head.expires) == (True, None)


async def test_live_run_is_not_retained(store: Store) -> None:
    """`retain` without an end means nothing."""
    claim = await owned(store.storage)
    await store.storage.append(Commit(claim, "c1", 1, retain=True))
    assert (await head_of(store.storage)).retained is False


async def test_run_that_ends_well_at_last_is_not_retained(store: Store) -> None:
    """A new end says anew whether the run is retained."""
    await ended(store.storage, retain=True)
    claim = await store.storage.claim(await head_of(store.storage), "a", "n2")
    assert claim is not None
    await store.storage.append(Commit(claim, "c9", 2, [b"x"], terminal=True, release=True))
    head = await head_of(store.storage)
    assert head.retained is False
    assert head.expires is not None


async def test_release_of_an_unknown_claim_is_refused_while_the_run_is_owned(store: Store) -> None:
    """Nobody gives up what is another's."""
    await owned(store.storage)
    with pytest.raises(ClaimLost):
        await store.storage.release(Claim("r1", "b", 9, "n9"), retention=HOUR)
