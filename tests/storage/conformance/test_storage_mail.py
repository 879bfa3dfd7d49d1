"""Durable mail to a run's owner, and its replies (promise 5)."""

import pytest

from rewound.storage import Answer, Appended, Commit, Mail
from tests.storage.stores import HOUR, LEASE, Store, ended, head_of, needs_of, new_run, owned

pytestmark = pytest.mark.anyio


async def test_mail_is_read_in_order(store: Store) -> None:
    """`mail` gives unread mail, oldest first, until an append answers it."""
    await owned(store.storage)
    sent = [Mail(f"m{number}", b"body%d" % number, "b") for number in (3, 1, 2)]
    for mail in sent:
        assert await store.storage.post("r1", mail)
    assert await store.storage.mail("r1") == sent
    assert (await head_of(store.storage)).mail == 3


async def test_post_returns_the_head(store: Store) -> None:
    """The sender sees who owns the run, with his mail counted."""
    await owned(store.storage)
    head = await store.storage.post("r1", Mail("m1", b"", "b"))
    assert head is not None
    assert head == await head_of(store.storage)
    assert head.mail == 1


async def test_mail_to_a_missing_run_is_refused(store: Store) -> None:
    """There is no such run: nothing is kept."""
    assert await store.storage.post("nope", Mail("m1", b"", "b")) is None
    assert await store.storage.mail("nope") == []


async def test_mail_posted_twice_is_stored_once(store: Store) -> None:
    """Promise 6 for `post`."""
    await owned(store.storage)
    for _ in range(2):
        await store.storage.post("r1", Mail("m1", b"x", "b"))
    assert await store.storage.mail("r1") == [Mail("m1", b"x", "b")]
    assert (await head_of(store.storage)).mail == 1


async def test_post_repeated_after_the_answer_is_not_stored_again(store: Store) -> None:
    """Promise 6: the answer may be faster than the repeat; the mail is not handled twice."""
    claim = await owned(store.storage)
    await store.storage.post("r1", Mail("m1", b"x", "b"))
    await store.storage.append(Commit(claim, "c1", 1, [b"y"], answers=[Answer("m1", b"done")]))
    assert await store.storage.post("r1", Mail("m1", b"x", "b")) == await head_of(store.storage)
    assert await store.storage.mail("r1") == []
    assert await store.storage.reply("m1") == b"done"


async def test_append_removes_mail_and_stores_its_reply(store: Store) -> None:
    """Promise 5: the append that records the effect answers; other mail stays unread."""
    claim = await owned(store.storage)
    for mail_id in ("m1", "m2"):
        await store.storage.post("r1", Mail(mail_id, b"x", "b"))
    answers = [Answer("m1", b"done")]
    assert await store.storage.append(Commit(claim, "c1", 1, [b"y"], answers=answers)) == Appended(2, mail=1)
    assert [mail.id for mail in await store.storage.mail("r1")] == ["m2"]
    assert await store.storage.reply("m1") == b"done"
    assert await store.storage.reply("m2") is None


async def test_append_may_hold_only_an_answer(store: Store) -> None:
    """A duplicate changes nothing and still gets its reply."""
    claim = await owned(store.storage)
    await store.storage.post("r1", Mail("m1", b"x", "b"))
    answered = Commit(claim, "c1", 1, answers=[Answer("m1", b"already")])
    assert await store.storage.append(answered) == Appended(1)
    assert await store.storage.append(answered) == Appended(1)
    assert await store.storage.reply("m1") == b"already"


async def test_refused_append_keeps_the_mail(store: Store) -> None:
    """An owner that lost its claim answers nobody."""
    claim = await owned(store.storage)
    await store.storage.post("r1", Mail("m1", b"x", "b"))
    refused = Commit(claim, "c1", 7, answers=[Answer("m1", b"no")])
    with pytest.raises(Exception, match="r1"):
        await store.storage.append(refused)
    assert len(await store.storage.mail("r1")) == 1
    assert await store.storage.reply("m1") is None


async def test_answer_to_unknown_mail_is_ignored(store: Store) -> None:
    """The count of unread mail never goes wrong."""
    claim = await owned(store.storage)
    done = await store.storage.append(Commit(claim, "c1", 1, [b"x"], answers=[Answer("m9", b"?")]))
    assert done == Appended(2)
    assert (await head_of(store.storage)).mail == 0


async def test_unknown_reply_is_none(store: Store) -> None:
    """A sender that asks too early waits."""
    assert await store.storage.reply("nope") is None


async def test_mail_survives_a_takeover(store: Store) -> None:
    """Mail is the run's, not the owner's; the next owner reads and answers it."""
    await owned(store.storage)
    await store.storage.post("r1", Mail("m1", b"x", "b"))
    await store.expire("a")
    claim = await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert claim is not None
    assert len(await store.storage.mail("r1")) == 1
    await store.storage.append(Commit(claim, "c1", 1, answers=[Answer("m1", b"done")]))
    assert await store.storage.reply("m1") == b"done"


async def test_mail_wakes_an_unowned_run(store: Store) -> None:
    """A parked or ended run with mail needs an owner until the mail is answered."""
    await ended(store.storage)
    await store.storage.join("b", LEASE)
    await store.storage.post("r1", Mail("m1", b"undo", "b"))
    assert await needs_of(store.storage) == [("r1", "wake")]
    claim = await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert claim is not None
    assert await needs_of(store.storage, "b") == [("r1", "wake")]
    await store.storage.append(
        Commit(claim, "c9", 2, answers=[Answer("m1", b"done")], release=True, retention=HOUR)
    )
    assert await needs_of(store.storage) == []


async def test_mail_nudges_its_live_owner_only(store: Store) -> None:
    """The hint may be lost, so the owner's own sweep finds the mail; other nodes leave it alone."""
    await owned(store.storage, node="a")
    await store.storage.post("r1", Mail("m1", b"undo", "b"))
    assert await needs_of(store.storage, "a") == [("r1", "wake")]
    assert await needs_of(store.storage, "b") == []


async def test_reply_is_kept_for_ten_minutes(virtual_store: Store) -> None:
    """Nine minutes after the answer the reply is there, after ten it is gone."""
    claim = await owned(virtual_store.storage)
    await virtual_store.storage.post("r1", Mail("m1", b"x", "b"))
    await virtual_store.storage.append(Commit(claim, "c1", 1, answers=[Answer("m1", b"done")]))
    await virtual_store.advance(540.0)
    assert await virtual_store.storage.purge() == 0
    assert await virtual_store.storage.reply("m1") == b"done"
    await virtual_store.advance(60.0)
    assert await virtual_store.storage.reply("m1") is None
    assert await virtual_store.storage.purge() == 0
    assert await virtual_store.storage.reply("m1") is None


async def test_mail_of_a_run_ends_with_it(store: Store) -> None:
    """An expired run leaves no mail to a later run of its id."""
    await ended(store.storage, retention=0.1)
    await store.storage.post("r1", Mail("m1", b"x", "b"))
    await store.advance(0.2)
    await store.storage.create(new_run("r1", commit="again", nonce="again"), None)
    assert await store.storage.mail("r1") == []
    assert (await head_of(store.storage)).mail == 0
