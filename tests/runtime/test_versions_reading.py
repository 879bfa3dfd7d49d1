"""Reading what another version has written, and journals that nobody can read (A8)."""

from typing import Any

import pytest

from rewound import (
    Failed,
    RunStuck,
    StorageError,
    WrongStatus,
    plan_of,
)
from rewound.runtime.engine.records import FORMAT, Spawned, encode_record
from rewound.runtime.node.objections import objection_to
from rewound.storage.protocol import Claim, Commit
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays_versions import Demanding, Old, Shrunk, interrupted

pytestmark = pytest.mark.anyio


async def test_the_end_of_an_older_versions_run_can_be_read(net: Net, stage: Stage) -> None:
    """A8: what ended under another version is still told, though the reactor has lost steps."""
    stage.errors["b"] = RuntimeError("no")
    first = await net.runtime(Old)
    run = await first.spawn(Old())
    await run.outcome()
    runtime = await net.runtime(Shrunk)
    outcome = await (await runtime.get(run.id, Shrunk)).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.step, outcome.message, outcome.inputs) == ("b", "no", {"item": "book"})


async def test_inputs_that_cannot_be_read_are_not_shown(net: Net, stage: Stage) -> None:
    """A3, A8: the inputs of another version are left out of a failure, rather than shown unmasked."""
    stage.errors["b"] = RuntimeError("no")
    first = await net.runtime(Old)
    run = await first.spawn(Old())
    await run.outcome()
    runtime = await net.runtime(Demanding)
    outcome = await (await runtime.get(run.id, Demanding)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.inputs == {}


async def test_an_unknown_record_is_left_to_others(net: Net, stage: Stage) -> None:
    """Architecture 5.8: a record that only a newer version can read is a refusal, not a crash."""
    run_id = await interrupted(net)
    journal = await net.memory.load(run_id)
    assert journal is not None
    claim = Claim(run_id, "", journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "newer", journal.head.length, [b"\x92\xcc\xfa\x01"]))
    runtime = await net.runtime(Old)
    await net.advance(3 * LEASE)
    handle = await runtime.get(run_id, Old)
    with pytest.raises(StorageError, match="cannot be read by this version of Shop: UnknownRecord"):
        await handle.outcome()
    await net.advance(2 * LEASE)
    with pytest.raises(RunStuck, match="UnknownRecord: record 4 of the journal cannot be read"):
        await handle.outcome()
    with pytest.raises(RunStuck):
        await handle.step(Old.b)
    assert stage.times("b") == 1


async def test_unreadable_with_mail(net: Net, stage: Stage) -> None:
    """Architecture 5.8: mail to a run that cannot be read is answered when the run is parked."""
    run_id = await interrupted(net)
    journal = await net.memory.load(run_id)
    assert journal is not None
    claim = Claim(run_id, "", journal.head.epoch, journal.head.nonce)
    await net.memory.append(Commit(claim, "newer", journal.head.length, [b"\x92\xcc\xfa\x01"]))
    runtime = await net.runtime(Old)
    refused: list[str] = []

    async def undo() -> None:
        with pytest.raises(WrongStatus) as raised:
            await runtime.undo(run_id)
        refused.append(str(raised.value))

    async with net.background() as tasks:
        tasks.start_soon(undo)
        await net.advance(5 * LEASE)
    assert "cannot go on: UnknownRecord" in refused[0]
    assert await net.status(run_id) == "stuck"


async def test_a_newer_record_format(net: Net) -> None:
    """Architecture 5.8: a run of a newer record format is not touched until nobody takes it."""
    run_id = await interrupted(net)
    internals: Any = net.memory
    internals._tables._entries[run_id].format = FORMAT + 1
    await net.runtime(Old)
    await net.advance(5 * LEASE)
    assert await net.status(run_id) == "stuck"


@pytest.mark.parametrize(
    ("journal", "objection"),
    [
        ([], "its journal does not begin with its inputs"),
        ([b"\xc1"], "UnknownRecord"),
        ([encode_record(Spawned(0.0, b"", "Shop", 1, "no shape"))], "ValidationError"),
    ],
)
async def test_journals_that_say_nothing(journal: list[bytes], objection: str) -> None:
    """Lesson 7: a journal that cannot be compared is an objection, never a crash."""
    assert objection in objection_to(journal, plan_of(Old))
