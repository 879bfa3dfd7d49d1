"""Spaces of numbered cells: who writes them, what a repeat is, how they are read."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from rewound.errors import ClaimLost, InputError, JournalMismatch
from rewound.storage import Cells, Claim, Commit, Space, Storage
from tests.storage.stores import HOUR, LEASE, Store, head_of, owned

pytestmark = pytest.mark.anyio

EMPTY = Space(0, b"", {})


async def put(
    storage: Storage, claim: Claim, version: int, cells: Mapping[int, bytes], **options: Any
) -> int:
    """Write to the space `map`, under an id that no other version of it has."""
    return await storage.put(Cells(claim, "map", f"w{version}", version, cells, **options))


async def test_cells_and_header_are_written_together(store: Store) -> None:
    """Cells are replaced one by one, the header as a whole, and each write counts."""
    claim = await owned(store.storage)
    assert await put(store.storage, claim, 0, {0: b"a", 1: b"b"}, header=b"first") == 1
    assert await put(store.storage, claim, 1, {1: b"B", 2: b"c"}, header=b"second") == 2
    assert await store.storage.space("r1", "map") == Space(2, b"second", {0: b"a", 1: b"B", 2: b"c"})


async def test_header_stays_unless_it_is_given(store: Store) -> None:
    """`None` keeps it; an empty one is one."""
    claim = await owned(store.storage)
    assert await put(store.storage, claim, 0, {0: b"a"}) == 1
    assert await store.storage.space("r1", "map", 0, 0) == Space(1, b"", {})
    await put(store.storage, claim, 1, {}, header=b"head")
    await put(store.storage, claim, 2, {1: b"b"})
    assert await store.storage.space("r1", "map", 0, 0) == Space(3, b"head", {})
    await put(store.storage, claim, 3, {}, header=b"")
    assert await store.storage.space("r1", "map") == Space(4, b"", {0: b"a", 1: b"b"})


async def test_any_bytes_are_kept(store: Store) -> None:
    """Values are opaque, also empty or binary ones; so are names."""
    claim = await owned(store.storage)
    every = bytes(range(256))
    name = 'süß/7:"map" \n'
    await store.storage.put(Cells(claim, "none", "w", 0, {0: b""}, b""))
    assert await store.storage.space("r1", "none") == Space(1, b"", {0: b""})
    await store.storage.put(Cells(claim, name, "3 4:w", 0, {0: b"", 7: every, 10**12: b"1 2:x"}, every))
    assert await store.storage.space("r1", name) == Space(1, every, {0: b"", 7: every})
    assert await store.storage.space("r1", name, 10**12) == Space(1, every, {10**12: b"1 2:x"})
    assert await store.storage.put(Cells(claim, name, "3 4:w", 0)) == 1


async def test_spaces_of_a_run_and_of_others_are_apart(store: Store) -> None:
    """The same numbers in other spaces, and the same space in other runs, are other cells."""
    first, second = await owned(store.storage), await owned(store.storage, "r2")
    for claim, space in ((first, "map"), (first, "map/1"), (second, "map")):
        await store.storage.put(Cells(claim, space, "w0", 0, {1: f"{claim.run_id} {space}".encode()}))
    for run_id, space in (("r1", "map"), ("r1", "map/1"), ("r2", "map")):
        assert await store.storage.space(run_id, space) == Space(1, b"", {1: f"{run_id} {space}".encode()})
    assert await store.storage.space("r2", "map/1") == EMPTY


async def test_journal_does_not_see_cells(store: Store) -> None:
    """Cells count for neither its length nor its commits."""
    claim = await owned(store.storage)
    before = await head_of(store.storage)
    await put(store.storage, claim, 0, {0: b"a"}, header=b"head")
    assert await head_of(store.storage) == before
    assert (await store.storage.append(Commit(claim, "c1", 1, [b"x"]))).length == 2


async def test_page_is_a_range_of_numbers(store: Store) -> None:
    """At most `count` numbers from `start` on, in order; missing ones are left out."""
    claim = await owned(store.storage)
    cells = {number: b"%d" % number for number in range(0, 400, 3)}
    await put(store.storage, claim, 0, dict(reversed(cells.items())), header=b"head")
    for start, count in ((0, 1), (1, 2), (99, 2), (95, 300), (390, 1000), (5000, 10)):
        page = await store.storage.space("r1", "map", start, count)
        assert page is not None
        assert page == Space(1, b"head", {n: cells[n] for n in range(start, start + count) if n in cells})
        assert list(page.cells) == sorted(page.cells)


async def test_many_cells_in_one_write(store: Store) -> None:
    """A write may be larger than a page, and a page is as large as it may be."""
    claim = await owned(store.storage)
    await put(store.storage, claim, 0, {number: b"%d" % number for number in range(2500)})
    page = await store.storage.space("r1", "map", 1500, 1000)
    assert page == Space(1, b"", {number: b"%d" % number for number in range(1500, 2500)})


async def test_too_large_a_page_is_refused(store: Store) -> None:
    """Nothing is left out silently, and no read blocks a server for long."""
    with pytest.raises(InputError, match=r"1001 cells .* at most 1000"):
        await store.storage.space("r1", "map", 0, 1001)


async def test_missing_space_is_empty_and_missing_run_none(store: Store) -> None:
    """A space needs no creating."""
    await owned(store.storage)
    assert await store.storage.space("r1", "map") == EMPTY
    assert await store.storage.space("nope", "map") is None


async def test_repeated_write_is_stored_once(store: Store) -> None:
    """Promises 2 and 6: the id of the newest write means that only its answer was lost."""
    claim = await owned(store.storage)
    assert await put(store.storage, claim, 0, {0: b"a"}, header=b"head") == 1
    assert await put(store.storage, claim, 0, {0: b"a"}, header=b"head") == 1
    assert await store.storage.space("r1", "map") == Space(1, b"head", {0: b"a"})


async def test_repeated_write_is_recognised_after_the_release(store: Store) -> None:
    """Promise 6: it was stored under a claim that was good then."""
    claim = await owned(store.storage)
    await put(store.storage, claim, 0, {0: b"a"})
    assert await store.storage.release(claim, retention=HOUR)
    assert await put(store.storage, claim, 0, {0: b"a"}) == 1


@pytest.mark.parametrize("expected", [0, 2])
async def test_unexpected_version_is_refused(store: Store, expected: int) -> None:
    """Promise 2: an owner that expects another space than storage has writes nothing."""
    claim = await owned(store.storage)
    await store.storage.put(Cells(claim, "map", "w", 0, {0: b"a"}, b"head"))
    with pytest.raises(JournalMismatch, match=rf"space 'map' of run r1 has version 1 .* version {expected}"):
        await put(store.storage, claim, expected, {0: b"b", 1: b"c"}, header=b"other")
    assert await store.storage.space("r1", "map") == Space(1, b"head", {0: b"a"})


async def test_lost_space_is_refused(store: Store) -> None:
    """Promise 2: a space that is not there has version 0, not the one that its owner wrote."""
    claim = await owned(store.storage)
    with pytest.raises(JournalMismatch, match=r"space 'map' of run r1 has version 0 .* version 3"):
        await put(store.storage, claim, 3, {0: b"a"})
    assert await store.storage.space("r1", "map") == EMPTY


async def test_write_to_a_missing_run_is_refused(store: Store) -> None:
    """Promise 2: no head, no cells; the message names the run and the space."""
    with pytest.raises(JournalMismatch, match=r"run gone is not in storage, .* version 2 of its space 'map'"):
        await put(store.storage, Claim("gone", "a", 1, "n"), 2, {0: b"a"})
    assert await store.storage.space("gone", "map") is None


async def test_only_the_owner_writes(store: Store) -> None:
    """Promise 1: epoch and nonce must be the head's, and the run must have an owner."""
    claim = await owned(store.storage)
    await put(store.storage, claim, 0, {0: b"a"})
    for epoch, nonce in ((claim.epoch + 1, claim.nonce), (claim.epoch, "other")):
        with pytest.raises(ClaimLost, match=r"node b no longer owns run r1 .* node a does"):
            await put(store.storage, Claim("r1", "b", epoch, nonce), 1, {0: b"b"})
    assert await store.storage.release(claim, retention=HOUR)
    with pytest.raises(ClaimLost, match="nobody does"):
        await put(store.storage, claim, 1, {0: b"b"})
    assert await store.storage.space("r1", "map") == Space(1, b"", {0: b"a"})


async def test_next_owner_goes_on(store: Store) -> None:
    """After a takeover the old claim writes nothing more, and the new one goes on at the version it read."""
    old = await owned(store.storage)
    await put(store.storage, old, 0, {0: b"a"}, header=b"head")
    await store.expire("a")
    await store.storage.join("b", LEASE)
    new = await store.storage.claim(await head_of(store.storage), "b", "n2")
    assert new is not None
    with pytest.raises(ClaimLost):
        await put(store.storage, old, 1, {0: b"late"})
    assert await put(store.storage, new, 1, {1: b"b"}) == 2
    assert await store.storage.space("r1", "map") == Space(2, b"head", {0: b"a", 1: b"b"})


async def test_refused_write_does_not_disturb_others(store: Store) -> None:
    """Writes that travel together, to new spaces and old ones, succeed and fail by themselves."""
    claim = await owned(store.storage)
    await store.storage.put(Cells(claim, "map3", "w", 0, {0: b"old"}))
    refused: list[int] = []

    async def write(number: int) -> None:
        try:
            await store.storage.put(Cells(claim, f"map{number}", "w0", number % 2, {number: b"x"}))
        except JournalMismatch:
            refused.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(write, number)
    assert sorted(refused) == [1, 5]
    found = [await store.storage.space("r1", f"map{number}") for number in range(6)]
    assert [space and space.version for space in found] == [1, 0, 1, 2, 1, 0]


async def test_writes_to_one_space_follow_each_other(store: Store) -> None:
    """Of several writes that travel together and expect the same version, one is stored."""
    claim = await owned(store.storage)
    stored: list[int] = []

    async def write(number: int) -> None:
        try:
            await store.storage.put(Cells(claim, "map", f"w{number}", 0, {number: b"x"}, b"%d" % number))
        except JournalMismatch:
            return
        stored.append(number)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(write, number)
    [winner] = stored
    assert await store.storage.space("r1", "map") == Space(1, b"%d" % winner, {winner: b"x"})


async def test_cancelled_write_can_be_repeated(store: Store) -> None:
    """Promise 7: a cancelled write happened or not; its repeat makes it so, once."""
    claim = await owned(store.storage)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await put(store.storage, claim, 0, {0: b"a"})
    assert await put(store.storage, claim, 0, {0: b"a"}) == 1


async def test_cells_are_seen_by_other_nodes(store: Store) -> None:
    """Whoever waits for a map's results reads them elsewhere."""
    claim = await owned(store.storage)
    await put(store.storage, claim, 0, {0: b"a"}, header=b"head")
    other = await store.another()
    assert await other.space("r1", "map") == Space(1, b"head", {0: b"a"})
