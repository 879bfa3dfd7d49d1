"""The payload hook and the limit (A10): what is stored, and what is refused."""

import pytest

from rewound.errors import PayloadTooLarge, StorageError
from rewound.storage import Answer, Cells, Commit, Encoded, Mail, MemoryStorage, NewRun, Space
from tests.storage.stores import Reversed, head_of, new_run, owned

pytestmark = pytest.mark.anyio


def run_of(record: bytes) -> NewRun:
    """Describe a run of one record."""
    return NewRun("r1", "Order", "running", 1, "f1", [record], "c0", "n1")


async def test_inner_storage_holds_encoded_bytes_only() -> None:
    """A10: records, mail and replies are encoded before they are stored, and decoded when read."""
    inner = MemoryStorage()
    storage = Encoded(inner, Reversed())
    claim = await owned(storage)
    await storage.post("r1", Mail("m1", b"body", "b"))
    [stored] = await inner.mail("r1")
    await storage.append(Commit(claim, "c1", 1, [b"record"], answers=[Answer("m1", b"reply")]))
    journal = await inner.load("r1")
    assert journal is not None
    assert (journal.records, stored.body) == ([b"!0", b"!drocer"], b"!ydob")
    assert (await inner.reply("m1"), await storage.reply("m1")) == (b"!ylper", b"reply")


async def test_inner_storage_holds_encoded_cells_only() -> None:
    """A10: so are cells and headers; a header that was never written stays empty."""
    inner = MemoryStorage()
    storage = Encoded(inner, Reversed())
    claim = await owned(storage)
    await storage.put(Cells(claim, "map", "w0", 0, {3: b"cell"}))
    assert await storage.space("r1", "map") == Space(1, b"", {3: b"cell"})
    await storage.put(Cells(claim, "map", "w1", 1, header=b"head"))
    assert await inner.space("r1", "map") == Space(2, b"!daeh", {3: b"!llec"})
    assert await storage.space("r1", "map") == Space(2, b"head", {3: b"cell"})


async def test_record_at_the_limit_is_stored() -> None:
    """The limit itself is allowed."""
    storage = Encoded(MemoryStorage(), max_record=4)
    assert (await storage.create(run_of(b"1234"), None)).created


async def test_large_record_is_refused_by_name() -> None:
    """A larger one names the run and its size, and nothing of the call is stored."""
    storage = Encoded(MemoryStorage(), max_record=4)
    with pytest.raises(PayloadTooLarge, match=r"run r1: .* 5 bytes .* \(4\)"):
        await storage.create(run_of(b"12345"), None)
    assert await storage.load("r1") is None


async def test_large_append_mail_and_reply_are_refused() -> None:
    """The limit holds for everything that is stored."""
    storage = Encoded(MemoryStorage(), max_record=4)
    claim = await owned(storage)
    with pytest.raises(PayloadTooLarge):
        await storage.append(Commit(claim, "c1", 1, [b"1", b"12345"]))
    with pytest.raises(PayloadTooLarge):
        await storage.append(Commit(claim, "c1", 1, answers=[Answer("m1", b"12345")]))
    with pytest.raises(PayloadTooLarge):
        await storage.post("r1", Mail("m1", b"12345", "b"))
    with pytest.raises(PayloadTooLarge):
        await storage.put(Cells(claim, "map", "w0", 0, {0: b"1", 1: b"12345"}))
    with pytest.raises(PayloadTooLarge):
        await storage.put(Cells(claim, "map", "w0", 0, header=b"12345"))
    assert await storage.space("r1", "map") == Space(0, b"", {})
    head = await head_of(storage)
    assert (head.length, head.mail) == (1, 0)


async def test_limit_counts_bytes_as_stored() -> None:
    """What the codec adds counts."""
    storage = Encoded(MemoryStorage(), Reversed(), max_record=4)
    assert (await storage.create(run_of(b"123"), None)).created
    with pytest.raises(PayloadTooLarge):
        await storage.post("r1", Mail("m1", b"1234", "b"))


async def test_undecodable_record_names_the_run_and_the_codec() -> None:
    """Bytes of another codec are the operator's matter, not a crash."""
    inner = MemoryStorage()
    await inner.create(new_run(), None)
    with pytest.raises(StorageError, match=r"run r1: .* codec .*not encoded"):
        await Encoded(inner, Reversed()).load("r1")


async def test_undecodable_cell_names_the_space() -> None:
    """So are those of a map's elements."""
    inner = MemoryStorage()
    claim = await owned(inner)
    await inner.put(Cells(claim, "map", "w0", 0, {0: b"cell"}))
    with pytest.raises(StorageError, match=r"the space 'map' of run r1: .* codec .*not encoded"):
        await Encoded(inner, Reversed()).space("r1", "map")


async def test_missing_run_and_reply_are_none() -> None:
    """There is nothing to decode."""
    storage = Encoded(MemoryStorage(), Reversed())
    assert await storage.load("nope") is None
    assert await storage.reply("nope") is None
    assert await storage.space("nope", "map") is None
