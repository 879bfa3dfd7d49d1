"""Notices: one stream per node, a reset first, hints for mail, changes and replies."""

from collections.abc import Sequence

import anyio
import pytest
from anyio.abc import ObjectReceiveStream

from rewound.storage import Answer, Commit, Mail, Notice
from tests.storage.stores import RESET, Store, ended, head_of, owned

pytestmark = pytest.mark.anyio

PATIENCE = 10.0


async def received(stream: ObjectReceiveStream[Notice], count: int) -> Sequence[Notice]:
    """Wait for so many notices."""
    with anyio.fail_after(PATIENCE):
        return [await stream.receive() for _ in range(count)]


async def test_stream_starts_with_a_reset(store: Store) -> None:
    """Whoever subscribes looks at everything once."""
    async with store.storage.notices("a") as stream:
        assert await received(stream, 1) == [RESET]


async def test_owner_is_told_of_mail(store: Store) -> None:
    """Mail posted by any node reaches the owner's channel."""
    await owned(store.storage, node="a")
    other = await store.another()
    async with store.storage.notices("a") as stream:
        await received(stream, 1)
        await other.post("r1", Mail("m1", b"x", "b"))
        assert await received(stream, 1) == [Notice("mail", "r1")]


async def test_sender_is_told_of_the_reply(store: Store) -> None:
    """The append that answers tells the sender's node."""
    claim = await owned(store.storage, node="a")
    other = await store.another()
    async with other.notices("b") as stream:
        await received(stream, 1)
        await other.post("r1", Mail("m1", b"x", "b"))
        await store.storage.append(Commit(claim, "c1", 1, answers=[Answer("m1", b"done")]))
        assert await received(stream, 1) == [Notice("reply", "m1")]


async def test_watcher_is_told_of_changes(store: Store) -> None:
    """Every append to a watched run is hinted at, until `unwatch`."""
    claim = await owned(store.storage, node="a")
    await owned(store.storage, "r2", node="a")
    other = await store.another()
    async with other.notices("b") as stream:
        await received(stream, 1)
        assert await other.watch("r1", "b") == await head_of(store.storage)
        await store.storage.append(Commit(claim, "c1", 1, [b"x"]))
        assert await received(stream, 1) == [Notice("changed", "r1")]


async def test_watcher_of_the_same_node_is_told(store: Store) -> None:
    """A waiter beside the owner needs no other way."""
    claim = await owned(store.storage, node="a")
    async with store.storage.notices("a") as stream:
        await received(stream, 1)
        await store.storage.watch("r1", "a")
        await store.storage.append(Commit(claim, "c1", 1, [b"x"], terminal=True, release=True))
        assert await received(stream, 1) == [Notice("changed", "r1")]


async def test_unwatched_run_is_silent(store: Store) -> None:
    """After `unwatch` (idempotent) nothing comes but what else is sent."""
    claim = await owned(store.storage, node="a")
    async with store.storage.notices("b") as stream:
        await received(stream, 1)
        await store.storage.watch("r1", "b")
        await store.storage.unwatch("r1", "b")
        await store.storage.unwatch("r1", "b")
        await store.storage.unwatch("nope", "b")
        await store.storage.append(Commit(claim, "c1", 1, [b"x"]))
        await owned(store.storage, "r2", node="b")
        await store.storage.post("r2", Mail("m2", b"x", "a"))
        assert await received(stream, 1) == [Notice("mail", "r2")]


async def test_unwatch_leaves_other_watchers(store: Store) -> None:
    """Each node watches for itself."""
    claim = await owned(store.storage, node="a")
    async with store.storage.notices("b") as stream:
        await received(stream, 1)
        await store.storage.watch("r1", "b")
        await store.storage.watch("r1", "c")
        await store.storage.unwatch("r1", "c")
        await store.storage.append(Commit(claim, "c1", 1, [b"x"]))
        assert await received(stream, 1) == [Notice("changed", "r1")]


async def test_watch_twice_is_one_watch(store: Store) -> None:
    """Promise 6 for `watch`: one `unwatch` ends it."""
    await owned(store.storage, node="a")
    await store.storage.watch("r1", "b")
    assert await store.storage.watch("r1", "b") == await head_of(store.storage)


async def test_ended_run_can_be_watched(store: Store) -> None:
    """The head that `watch` returns tells that it is over."""
    await ended(store.storage)
    head = await store.storage.watch("r1", "b")
    assert head is not None
    assert head.terminal


async def test_nodes_have_channels_of_their_own(store: Store) -> None:
    """What is meant for one node does not reach the other."""
    await owned(store.storage, "r1", node="a")
    await owned(store.storage, "r2", node="b")
    async with store.storage.notices("a") as one, store.storage.notices("b") as two:
        assert [await received(one, 1), await received(two, 1)] == [[RESET], [RESET]]
        await store.storage.post("r1", Mail("m1", b"x", "c"))
        await store.storage.post("r2", Mail("m2", b"x", "c"))
        assert await received(one, 1) == [Notice("mail", "r1")]
        assert await received(two, 1) == [Notice("mail", "r2")]


async def test_cancelled_receive_loses_nothing(store: Store) -> None:
    """Promise 7: a reader that gave up waiting gets the next notice at its next try."""
    await owned(store.storage, node="a")
    async with store.storage.notices("a") as stream:
        await received(stream, 1)
        async with anyio.create_task_group() as group:
            group.start_soon(stream.receive)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        await store.storage.post("r1", Mail("m1", b"x", "b"))
        assert await received(stream, 1) == [Notice("mail", "r1")]


async def test_left_stream_is_closed(store: Store) -> None:
    """Outside its block a stream gives nothing."""
    async with store.storage.notices("a") as stream:
        await received(stream, 1)
    with pytest.raises(anyio.ClosedResourceError):
        await stream.receive()
