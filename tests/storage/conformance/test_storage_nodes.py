"""Leases: one per node, whose expiry is final (promise 3)."""

import pytest

from rewound.storage import Node
from tests.storage.stores import LEASE, Store, owned

pytestmark = pytest.mark.anyio


async def test_time_is_unix_seconds(store: Store) -> None:
    """`now` is the storage's clock, in unix seconds."""
    assert await store.storage.now() > 1_600_000_000


async def test_identity_is_the_same_for_every_client(store: Store) -> None:
    """`identity` names the server, not the connection."""
    other = await store.another()
    assert await store.storage.identity() == await other.identity()


async def test_checks_are_findings_with_a_level(store: Store) -> None:
    """A fit server has findings, and none that fails."""
    levels = {check.level for check in await store.storage.checks()}
    assert levels
    assert levels <= {"ok", "warn"}


async def test_closing_twice_is_harmless(store: Store) -> None:
    """`close` is idempotent."""
    other = await store.another()
    await other.close()
    await other.close()
    assert await store.storage.now() > 0


async def test_joined_node_is_listed_with_its_expiry(store: Store) -> None:
    """`nodes` tells when a lease expires."""
    await store.storage.join("a", LEASE)
    [node] = await store.storage.nodes()
    assert node.id == "a"
    assert node.expires == pytest.approx(await store.storage.now() + LEASE, abs=5)


async def test_join_repeated_after_a_lost_answer_is_harmless(store: Store) -> None:
    """Promise 6 for `join`."""
    await store.storage.join("a", LEASE)
    await store.storage.join("a", LEASE)
    assert len(await store.storage.nodes()) == 1


async def test_renewal_extends_the_lease(store: Store) -> None:
    """A renewed lease lives beyond its first end."""
    await store.storage.join("a", 0.1)
    assert await store.storage.renew("a", LEASE)
    await store.advance(0.2)
    assert await store.storage.renew("a", LEASE)


async def test_expired_lease_is_never_renewed(store: Store) -> None:
    """Promise 3: once expired, renewal says so, for good."""
    await store.storage.join("a", 0.1)
    await store.advance(0.2)
    assert not await store.storage.renew("a", LEASE)
    assert not await store.storage.renew("a", LEASE)


async def test_unknown_node_cannot_renew(store: Store) -> None:
    """Only `join` starts a lease."""
    assert not await store.storage.renew("a", LEASE)


async def test_leaving_ends_the_lease(store: Store) -> None:
    """`leave` is immediate, final and idempotent; a node without runs is not listed any more."""
    await store.storage.join("a", LEASE)
    await store.storage.leave("a")
    await store.storage.leave("a")
    assert not await store.storage.renew("a", LEASE)
    assert await store.storage.nodes() == []


async def test_dead_node_is_listed_while_it_owns_runs(store: Store) -> None:
    """`nodes` shows who died with runs."""
    await owned(store.storage, node="a")
    await store.expire("a")
    assert await store.storage.nodes() == [Node("a", None)]


async def test_one_lease_expires_without_the_other(store: Store) -> None:
    """Each node has a lease of its own."""
    await store.storage.join("a", LEASE)
    await store.storage.join("b", LEASE)
    await store.expire("a")
    assert not await store.storage.renew("a", LEASE)
    assert await store.storage.renew("b", LEASE)
