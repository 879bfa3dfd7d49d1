"""What a map gives: `Results`, read by page, wherever they are read (rule M8)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Struct

from rewound import (
    Cancelled,
    ElementOutcome,
    Failed,
    PayloadError,
    Reactor,
    Results,
    StepError,
    StorageError,
    compose,
    fan_out,
    source,
    step,
)
from rewound.runtime.results import PAGE
from rewound.storage.faults import Fault
from rewound.storage.forward import Forward
from rewound.storage.protocol import Space
from tests.runtime.maps.plays import Billing, Board, Charge, Framed, Hiding, Lenient, rows
from tests.runtime.nodes import LEASE, Net
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


class Receipt(Struct):
    """What an element gives."""

    id: int


class Pays(Reactor[Receipt]):
    """An element that gives a struct."""

    row: int

    @step
    async def pay(self, ctx: Stagehand) -> Receipt:
        """Act."""
        await act(ctx, f"pay {self.row}")
        return Receipt(self.row)


class Given(Reactor[Results[Receipt]]):
    """A run whose result is that of its map."""

    rows: list[int]
    paid = fan_out(Pays, over="rows", atomic=False)


async def test_m8_results_of_a_run(net: Net, stage: Board) -> None:
    """M8, lesson 36: length, indexes (negative too) and iteration; values have their type."""
    runtime = await net.runtime(Given)
    results: Results[Receipt] = await runtime.run(Given, rows(250))
    assert len(results) == 250
    assert await results.get(0) == Receipt(0)
    assert await results.get(-1) == Receipt(249)
    assert [receipt.id async for receipt in results] == list(range(250))
    assert [receipt.id for receipt in await results.all()] == list(range(250))
    with pytest.raises(IndexError, match="element 250 of 250"):
        await results.get(250)
    with pytest.raises(IndexError):
        await results.get(-251)


async def test_m8_successes_failures_outcomes(net: Net, stage: Board) -> None:
    """M8, M5: one outcome for each element, in index order; a failure has its class and message."""
    runtime = await net.runtime(Given)
    stage.errors["pay 1"] = KeyError("unknown")
    results: Results[Receipt] = await runtime.run(Given, rows(3))
    assert [each.index async for each in results.successes()] == [0, 2]
    (failed,) = [each async for each in results.failures()]
    assert (failed.index, failed.status, failed.value) == (1, "failed", None)
    assert failed.error is not None
    assert (failed.error.type, failed.error.message, failed.error.step) == ("KeyError", "'unknown'", "pay")
    assert [each.status async for each in results.outcomes()] == ["completed", "failed", "completed"]
    with pytest.raises(LookupError, match="element 1 is failed: KeyError"):
        await results.get(1)
    assert await results.outcome(2) == ElementOutcome(2, "completed", Receipt(2))


class Reads(Forward):
    """A storage that counts how maps are read."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.counts: list[int] = []

    async def space(self, run_id: str, space: str, start: int = 0, count: int = 100) -> Space | None:
        """Note how much is read."""
        self.counts.append(count)
        return await self.inner.space(run_id, space, start, count)


async def test_m8_they_are_read_by_page(net: Net, stage: Board) -> None:
    """M8: nothing is read before it is asked for, and a page at a time."""
    reads = Reads(net.memory)
    runtime = await net.runtime(Given, storage=reads)
    results: Results[Receipt] = await runtime.run(Given, rows(250))
    reads.counts.clear()
    assert len(results) == 250
    assert reads.counts == []
    await results.get(101)
    await results.get(102)
    assert reads.counts == [PAGE]
    await results.all()
    assert max(reads.counts) == PAGE
    assert len(reads.counts) <= 4


async def test_m8_they_are_stored_by_reference(net: Net, stage: Board) -> None:
    """M8, lesson 27: the run's record does not grow with its elements, whatever they give."""
    sizes: list[int] = []
    for count in (10, 500):
        runtime = await net.runtime(Counted)
        run = await runtime.spawn(Counted(count=count))
        await run.result()
        sizes.append(sum(map(len, await net.records(run.id))))
    assert abs(sizes[1] - sizes[0]) < 10


class Counted(Reactor[int]):
    """A map over a source, whose rows are not in the run's record either."""

    count: int

    @source
    async def numbers(self) -> AsyncIterator[int]:
        """Yield numbers."""
        for number in range(self.count):
            yield number

    paid = fan_out(Pays, over=numbers)

    @paid.collect
    async def total(self, paid: Results[Receipt]) -> int:
        """Count."""
        return len(paid)


async def test_a_step_of_the_run_handle(net: Net, stage: Board) -> None:
    """API, Running: `run.step(Reactor.map)` gives the results as soon as the map has completed."""
    runtime = await net.runtime(Billing)
    stage.close("last")
    run = await runtime.spawn(Billing, rows(3))
    results = await run.step(Billing.charges)
    assert await results.all() == ["charge 0", "charge 1", "charge 2"]
    stage.open("last")
    await run.result()


async def test_results_on_another_node(net: Net, stage: Board) -> None:
    """M8: they are read from storage, so any node can read them, also after the run has ended."""
    first, second = await net.runtime(Given), await net.runtime(Given)
    run = await first.spawn(Given, rows(3))
    await run.result()
    results: Results[Receipt] = await (await second.get(run.id, Given)).result()
    assert await results.all() == [Receipt(0), Receipt(1), Receipt(2)]


async def test_results_of_a_composed_child(net: Net, stage: Board) -> None:
    """C1, M8: a child may return its map; its parent reads the results like any other."""
    runtime = await net.runtime(Around)
    assert await runtime.run(Around, rows(3)) == 3


class Around(Reactor[int]):
    """A parent of a child that returns a map."""

    rows: list[int]
    given = compose(Given)

    @step
    async def count(self, given: Results[Receipt]) -> int:
        """Count."""
        return len(await given.all())


async def test_undos_of_later_steps_still_read_them(net: Net, stage: Board) -> None:
    """V2, M8: what a map gave does not change when it is taken back, so a repeated undo finds it."""
    runtime = await net.runtime(Totals)
    run = await runtime.spawn(Totals, rows(3))
    await run.result()
    stage.errors["undo 3"] = ValueError("not now")
    await run.undo()
    assert len((await run.outcome()).rollback_failures) == 1
    stage.errors.clear()
    await run.undo()
    assert await run.outcome() == Cancelled("", undone=True)
    assert stage.times("undo 3") == 2


class Totals(Framed):
    """A map, and a step whose undo reads its results."""

    charges = fan_out(Charge, over="rows", after="prepare")

    @step
    async def total(self, charges: Results[str]) -> int:
        """Count."""
        return len(charges)

    @total.undo
    async def untotal(self, charges: Results[str], ctx: Stagehand) -> None:
        """Count again."""
        await act(ctx, f"undo {len(await charges.all())}")


async def test_a_new_generation_has_elements_of_its_own(net: Net, stage: Board) -> None:
    """V2: results of a retried run are those of its last generation."""
    runtime = await net.runtime(Lenient)
    stage.errors |= {"charge 1": ValueError("declined"), "last": ValueError("no")}
    run = await runtime.spawn(Lenient, rows(3))
    assert isinstance(await run.outcome(), Failed)
    stage.errors.clear()
    await run.retry()
    assert await run.result() == 3


async def test_a_value_that_cannot_be_stored_fails_its_element(net: Net, stage: Board) -> None:
    """S11: the element has started, so it is compensated; the map fails by name."""
    runtime = await net.runtime(Strange)
    outcome = await (await runtime.spawn(Strange, rows(2))).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step) == ("EncodeError", "made[0]/make")
    assert "void 0" in stage.log


class Makes(Reactor[Any]):
    """An element that gives what cannot be stored."""

    row: int

    @step
    async def make(self) -> Any:
        """Make a set of locks."""
        return object()

    @make.compensate
    async def void(self, error: StepError, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"void {self.row}")


class Strange(Reactor[None]):
    """A map of those."""

    rows: list[int]
    made = fan_out(Makes, over="rows", batch_size=1)

    @step(after=made)
    async def end(self) -> None:
        """End."""


@pytest.mark.parametrize("swallow", [False, True])
async def test_s11_storage_that_fails_while_a_body_reads(net: Net, stage: Board, swallow: bool) -> None:  # noqa: FBT001
    """S11, lesson 9: that is no failure of the step, and no success either: the step runs again."""
    peer = await net.peer(Reader)
    stage.close("begin")
    run = await peer.runtime.spawn(Reader(rows=[0, 1, 2], swallow=swallow))
    await net.settle()
    reads = peer.faults.trace.count("space") + 1
    peer.faults.plan.append(Fault("fail", at=reads, method="space"))
    stage.open("begin")
    await net.advance(LEASE)
    assert await run.result() == 3
    assert stage.times("begin") == 2


class Reader(Reactor[int]):
    """A step that reads results, and may hide that it could not."""

    rows: list[int]
    swallow: bool
    paid = fan_out(Pays, over="rows")

    @step
    async def count(self, paid: Results[Receipt], ctx: Stagehand) -> int:
        """Count."""
        await act(ctx, "begin")
        try:
            return len(await paid.all())
        except StorageError:
            if self.swallow:
                return 0
            raise


async def test_m8_a_record_that_is_gone(net: Net, stage: Board) -> None:
    """M8: whoever reads over a lost record is told; it is not passed over."""
    storage = Hiding(net.memory)
    runtime = await net.runtime(Given, storage=storage)
    results: Results[Receipt] = await runtime.run(Given, rows(3))
    storage.lost = ("0:paid", 1)
    with pytest.raises(PayloadError, match="element 1 of paid has no record any more"):
        await results.all()


async def test_nothing_of_a_map_is_left_in_memory_when_it_is_done(net: Net, stage: Board) -> None:
    """Lesson 30: neither owners nor tasks of a map outlive its order."""
    peer = await net.peer(Billing)
    stage.close("last")
    run = await peer.runtime.spawn(Billing, rows(20))
    await net.settle()
    owner = peer.services.owners[run.id]
    assert not owner._work.maps.busy
    stage.open("last")
    await run.result()
    await net.advance(LEASE)
    assert peer.services.owners == {}
