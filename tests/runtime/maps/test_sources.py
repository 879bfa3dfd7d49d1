"""Where elements come from: generators, pages, other maps (rules M2, M4)."""

from collections.abc import AsyncIterator
from typing import Any, ClassVar

import anyio
import pytest
from msgspec import Struct

from rewound import (
    Context,
    Failed,
    Halt,
    Page,
    Reactor,
    Results,
    element,
    fan_out,
    map_each,
    source,
    step,
)
from rewound.storage.forward import Forward
from rewound.storage.protocol import Cells
from tests.runtime.maps.plays import Board, Charge, Framed, Hiding, rows
from tests.runtime.nodes import LEASE, Net
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


class Stream(Reactor[int]):
    """A map over a generator."""

    count: int

    @source
    async def orders(self, ctx: Stagehand) -> AsyncIterator[int]:
        """Yield numbers, acting before each."""
        for number in range(self.count):
            await act(ctx, f"read {number}")
            yield number
        await act(ctx, "end")

    charges = fan_out(Charge, over=orders, batch_size=3)

    @charges.collect
    async def total(self, charges: Results[str], ctx: Stagehand) -> int:
        """Count."""
        await act(ctx, "total")
        return len(await charges.all())


class Paged(Stream):
    """A map over pages."""

    @source
    async def pages(self, ctx: Stagehand, cursor: int | None) -> AsyncIterator[Page[int]]:
        """Yield pages of two, from where the cursor says."""
        for start in range(cursor or 0, self.count, 2):
            await act(ctx, f"read {start}")
            yield Page(list(range(start, min(start + 2, self.count))), start + 2)

    charges = fan_out(Charge, over=pages, batch_size=3)


@pytest.mark.parametrize("reactor", [Stream, Paged])
@pytest.mark.parametrize("count", [0, 1, 7, 250])
async def test_m4_a_generator_is_read_to_its_end(
    net: Net, stage: Board, reactor: type[Stream], count: int
) -> None:
    """M4: each row has one element, none twice, whatever the number of pages."""
    runtime = await net.runtime(reactor)
    run = await runtime.spawn(reactor(count=count))
    assert await run.result() == count
    assert sorted(stage.acted("charge")) == list(range(count))
    assert (await run.maps())["charges"].total == count


async def test_m2_rows_start_as_they_come(net: Net, stage: Board) -> None:
    """M2: elements do not wait for a page to fill; the total is known at the end."""
    runtime = await net.runtime(Stream)
    stage.close("read 2", "end")
    run = await runtime.spawn(Stream(count=3))
    await net.settle()
    assert sorted(stage.acted("charge")) == [0, 1]
    assert (await run.maps())["charges"].total is None
    stage.open("read 2")
    await net.settle()
    assert sorted(stage.acted("charge")) == [0, 1, 2]
    assert await run.status() == "running"
    stage.open("end")
    assert await run.result() == 3


async def test_m4_a_source_is_read_only_as_fast_as_slots_free_up(net: Net, stage: Board) -> None:
    """M4: while elements take their time, the generator is not run ahead by more than two pages."""
    runtime = await net.runtime(Stream)
    stage.close("charge 0", "charge 1", "charge 2")
    run = await runtime.spawn(Stream(count=2000))
    await net.settle()
    assert len(stage.acted("read")) <= 300
    stage.open("charge 0", "charge 1", "charge 2")
    assert await run.result() == 2000


async def test_m4_a_stopped_map_reads_no_more(net: Net, stage: Board) -> None:
    """M4, M5: once an element has failed, its source is left alone."""
    runtime = await net.runtime(Stream)
    stage.errors["charge 0"] = ValueError("declined")
    stage.close("charge 1")
    run = await runtime.spawn(Stream(count=2000))
    await net.settle()
    before = len(stage.acted("read"))
    assert before <= 300
    stage.open("charge 1")
    assert isinstance(await run.outcome(), Failed)
    assert len(stage.acted("read")) == before


async def test_m4_rows_are_stored_before_their_elements_start(net: Net, stage: Board) -> None:
    """M4: what an element runs on is in storage by the time it acts."""
    runtime = await net.runtime(Stream)
    stage.close("charge 0")
    run = await runtime.spawn(Stream(count=1))
    await net.settle()
    space = await net.memory.space(run.id, "0:charges:rows")
    assert space is not None
    assert list(space.cells) == [0]
    stage.open("charge 0")
    await run.result()


async def test_m4_a_source_that_fails_fails_the_map(net: Net, stage: Board) -> None:
    """M4: what has begun settles and is taken back; the failure keeps class and message."""
    runtime = await net.runtime(Stream)
    stage.errors["read 2"] = ConnectionError("gone")
    stage.close("charge 0")
    run = await runtime.spawn(Stream(count=5))
    await net.settle()
    stage.open("charge 0")
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.message, outcome.step) == ("ConnectionError", "gone", "charges")
    assert "in orders" in outcome.traceback
    assert sorted(stage.acted("refund")) == [0, 1]


async def test_m4_the_failure_of_a_source_survives_a_crash(net: Net, stage: Board) -> None:
    """M4, S3: a map that was stopping still stops for the same reason, and its elements run to their end."""
    first = await net.peer(Stream)
    stage.errors["read 2"] = ConnectionError("gone")
    stage.close("charge 0")
    run = await first.runtime.spawn(Stream(count=5))
    await net.settle()
    await first.kill()
    stage.open("charge 0")
    second = await net.runtime(Stream)
    await net.advance(2 * LEASE)
    outcome = await (await second.get(run.id, Stream)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "ConnectionError"
    assert sorted(stage.acted("refund")) == [0, 1]


async def test_s6_a_source_that_halts_halts_the_run(net: Net, stage: Board) -> None:
    """S6: nothing is undone, and what has begun settles."""
    runtime = await net.runtime(Stream)
    stage.errors["read 2"] = Halt("enough")
    run = await runtime.spawn(Stream(count=5))
    await run.outcome()
    assert await run.status() == "halted"
    assert sorted(stage.acted("charge")) == [0, 1]
    assert stage.acted("refund") == []


async def test_a_row_that_cannot_be_stored_fails_the_map(net: Net, stage: Board) -> None:
    """S11: the message names the source, the row's place and its type."""
    runtime = await net.runtime(Strange)
    outcome = await (await runtime.spawn(Strange())).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "EncodeError"
    assert "Strange.things: row" in outcome.message


class Strange(Reactor[None]):
    """A source of what cannot be stored."""

    @source
    async def things(self) -> AsyncIterator[Any]:
        """Yield a lock."""
        yield anyio.Lock()

    charges = fan_out(Charge, over=things)

    @step(after=charges)
    async def end(self) -> None:
        """End."""


async def test_m4_a_plain_source_that_was_cut_off_is_lost(net: Net, stage: Board) -> None:
    """M4: it cannot be read again safely: the map fails, names the remedy, and is taken back."""
    first = await net.peer(Stream)
    stage.close("charge 1", "read 2")
    run = await first.runtime.spawn(Stream(count=5))
    await net.settle()
    await first.kill()
    stage.open("charge 1", "read 2")
    second = await net.runtime(Stream)
    await net.advance(2 * LEASE)
    outcome = await (await second.get(run.id, Stream)).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step) == ("SourceLost", "charges")
    assert "Stream.orders was cut off after 2 rows" in outcome.message
    assert "cursor" in outcome.message
    assert stage.acted("charge") in ([0, 1, 1], [1, 0, 1])
    assert sorted(stage.acted("refund")) == [0, 1]


async def test_m4_a_plain_source_that_gave_nothing_yet_begins_again(net: Net, stage: Board) -> None:
    """M4: no row is stored, so nothing can be repeated."""
    first = await net.peer(Stream)
    stage.close("read 0")
    run = await first.runtime.spawn(Stream(count=3))
    await net.settle()
    await first.kill()
    stage.open("read 0")
    second = await net.runtime(Stream)
    await net.advance(2 * LEASE)
    assert await (await second.get(run.id, Stream)).result() == 3


async def test_m4_a_source_at_its_end_is_not_needed_any_more(net: Net, stage: Board) -> None:
    """M4: all rows are stored, so a plain source that has ended is no loss."""
    first = await net.peer(Stream)
    stage.close("charge 1")
    run = await first.runtime.spawn(Stream(count=3))
    await net.settle()
    await first.kill()
    stage.open("charge 1")
    second = await net.runtime(Stream)
    await net.advance(2 * LEASE)
    assert await (await second.get(run.id, Stream)).result() == 3
    assert stage.times("read 0") == 1
    assert sorted(stage.acted("charge")) == [0, 1, 1, 2]


async def test_m4_a_source_with_a_cursor_goes_on(net: Net, stage: Board) -> None:
    """M4: it is given the cursor of the last stored page; no row is repeated or left out."""
    first = await net.peer(Paged)
    stage.close("read 4")
    run = await first.runtime.spawn(Paged(count=7))
    await net.settle()
    await first.kill()
    stage.open("read 4")
    second = await net.runtime(Paged)
    await net.advance(2 * LEASE)
    assert await (await second.get(run.id, Paged)).result() == 7
    assert stage.acted("read") == [0, 2, 4, 4, 6]
    assert sorted(stage.acted("charge")) == list(range(7))


class At(Reactor[int]):
    """A map over pages whose cursor is not plain data."""

    @source
    async def pages(self, ctx: Stagehand, cursor: tuple[int, int] | None) -> AsyncIterator[Page[int]]:
        """Yield one row a page."""
        assert cursor is None or isinstance(cursor, tuple)
        for number in range(cursor[0] if cursor else 0, 3):
            await act(ctx, f"read {number}")
            yield Page([number], (number + 1, 0))
            yield Page([], (number + 1, 0))

    charges = fan_out(Charge, over=pages)

    @charges.collect
    async def total(self, charges: Results[str]) -> int:
        """Count."""
        return len(charges)


async def test_lesson_36_a_cursor_keeps_its_type(net: Net, stage: Board) -> None:
    """Lesson 36: after a crash the source gets the cursor as it is annotated; empty pages do no harm."""
    first = await net.peer(At)
    stage.close("read 2")
    run = await first.runtime.spawn(At())
    await net.settle()
    await first.kill()
    stage.open("read 2")
    second = await net.runtime(At)
    await net.advance(2 * LEASE)
    assert await (await second.get(run.id, At)).result() == 3


async def test_a_source_takes_results_and_the_context(net: Net, stage: Board) -> None:
    """API, maps: a source's parameters are results and inputs by name; `ctx` has a key of its own."""
    runtime = await net.runtime(Reading)
    run = await runtime.spawn(Reading())
    assert await run.result() == 3
    assert stage.log[0] == f"{run.id}:numbers:0:forward"


class Reading(Reactor[int]):
    """A source that reads a step's result."""

    @step
    async def limit(self) -> int:
        """Return a limit."""
        return 3

    @source
    async def numbers(self, limit: int, ctx: Context[dict[str, Any]]) -> AsyncIterator[int]:
        """Yield as many."""
        ctx.state["log"].append(ctx.idempotency_key)
        for number in range(limit):
            yield number

    charges = map_each(Charge, over=numbers)

    @charges.collect
    async def total(self, charges: Results[str]) -> int:
        """Count."""
        return len(charges)


class Confirm(Reactor[str]):
    """An element that runs on the result of another one."""

    charge: str

    @step
    async def confirm(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"confirm {self.charge.split()[1]}")

    @confirm.undo
    async def unconfirm(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"unconfirm {self.charge.split()[1]}")


class Twice(Framed):
    """A map over the successes of another one."""

    charges = fan_out(Charge, over="rows", after="prepare", atomic=False)
    confirmed = fan_out(Confirm, over=charges, bind={"charge": element()})

    @confirmed.collect
    async def listed(self, confirmed: Results[str], ctx: Stagehand) -> list[str]:
        """List how each has ended."""
        await act(ctx, "listed")
        return [each.value or each.status async for each in confirmed.outcomes()]


async def test_a_map_over_a_map_keeps_the_indexes(net: Net, stage: Board) -> None:
    """API, maps: the successes of the other map are iterated; what failed there is skipped here."""
    runtime = await net.runtime(Twice)
    stage.errors["charge 1"] = ValueError("declined")
    assert await runtime.run(Twice, rows(3)) == ["confirm 0", "skipped", "confirm 2"]


async def test_a_map_over_a_map_is_taken_back_first(net: Net, stage: Board) -> None:
    """S4: the newer map first; its elements still find what they ran on. Gaps owe nothing."""
    runtime = await net.runtime(Twice)
    stage.errors |= {"charge 1": ValueError("declined"), "listed": ValueError("no")}
    run = await runtime.spawn(Twice, rows(3))
    outcome = await run.outcome()
    assert outcome.rollback_failures == []
    back = stage.log[stage.log.index("listed") + 1 :]
    assert sorted(back[:2]) == ["unconfirm 0", "unconfirm 2"]
    assert sorted(back[2:4]) == ["refund 0", "refund 2"]
    assert back[4:] == ["unprepare"]


async def test_a_map_over_many_gaps(net: Net, stage: Board) -> None:
    """M4, R8: however many rows have no element, they are passed over in turns that are bounded."""
    writes = Writes(net.memory)
    runtime = await net.runtime(Twice, storage=writes)
    stage.errors |= {f"charge {row}": ValueError("declined") for row in range(1, 350)}
    listed = await runtime.run(Twice, rows(350))
    assert listed == ["confirm 0", *["skipped"] * 349]
    assert writes.most <= 150


class Writes(Forward):
    """A storage that notes how many cells are written together."""

    most = 0

    async def put(self, cells: Cells) -> int:
        """Note it."""
        self.most = max(self.most, len(cells.cells))
        return await self.inner.put(cells)


async def test_rows_of_an_element_that_is_undone_again_are_still_there(net: Net, stage: Board) -> None:
    """V2: an undo that repeats what failed finds the row, though the element it came from was taken back."""
    runtime = await net.runtime(Twice)
    run = await runtime.spawn(Twice, rows(2))
    await run.result()
    stage.errors["unconfirm 1"] = ValueError("not now")
    await run.undo()
    assert len((await run.outcome()).rollback_failures) == 1
    stage.errors.clear()
    stage.log.clear()
    await run.undo()
    assert (await run.outcome()).rollback_failures == []
    assert stage.log == ["unconfirm 1"]


async def test_r5_a_row_is_gone(net: Net, stage: Board) -> None:
    """R5, M4: an element whose stored row is lost cannot be taken back, which is said of it alone."""
    storage = Hiding(net.memory)
    runtime = await net.runtime(Paged, storage=storage)
    stage.errors["total"] = ValueError("no")
    stage.close("total")
    run = await runtime.spawn(Paged(count=400))
    await net.settle()
    storage.lost = ("0:charges:rows", 2)
    stage.open("total")
    outcome = await run.outcome()
    assert {each.element_index for each in outcome.rollback_failures} == {2, 3}
    assert {each.error for each in outcome.rollback_failures} == {"PayloadError"}
    assert len(stage.acted("refund")) == 398


async def test_m8_a_map_over_a_map_whose_record_is_gone(net: Net, stage: Board) -> None:
    """M8: a lost record of the other map is no gap: it fails the element that stands on it, by name."""
    storage = Hiding(net.memory)
    storage.lost = ("0:charges", 1)
    runtime = await net.runtime(Twice, storage=storage)
    outcome = await (await runtime.spawn(Twice, rows(3))).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step) == ("PayloadError", "confirmed[1]")


class Fussy(Struct):
    """A value that may refuse to be read."""

    refuses: ClassVar[bool] = False
    value: int

    def __post_init__(self) -> None:
        """Refuse, or not."""
        if Fussy.refuses:
            raise ValueError("not now")


class Found(Reactor[None]):
    """A map over what a step has found."""

    @step
    async def found(self) -> list[Fussy]:
        """Find two."""
        return [Fussy(0), Fussy(1)]

    @source
    async def numbers(self, found: list[Fussy]) -> AsyncIterator[int]:
        """Yield them as numbers."""
        for each in found:
            yield each.value

    @step
    async def begin(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "begin")

    class Takes(Reactor[None]):
        """An element."""

        fussy: Fussy

        @step
        async def take(self) -> None:
            """Take it."""

        @take.undo
        async def give(self, ctx: Stagehand) -> None:
            """Act."""
            await act(ctx, "give")

    taken = fan_out(Takes, over=found)
    charges = fan_out(Charge, over=numbers, after=[taken, begin])

    @step(after=charges)
    async def end(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "end")


@pytest.mark.parametrize("gate", ["begin", "end"])
async def test_values_that_cannot_be_read_any_more(net: Net, stage: Board, gate: str) -> None:
    """S2, S10: forward, that fails the map; back, it is a failure of each element that would need them."""
    runtime = await net.runtime(Found)
    stage.errors["end"] = ValueError("no")
    stage.close(gate)
    run = await runtime.spawn(Found())
    await net.settle()
    Fussy.refuses = True
    try:
        stage.open(gate)
        outcome = await run.outcome()
    finally:
        Fussy.refuses = False
    assert isinstance(outcome, Failed)
    assert outcome.step == ("charges" if gate == "begin" else "end")
    assert [(each.map_step, each.element_index) for each in outcome.rollback_failures] == [
        ("taken", 0),
        ("taken", 1),
    ]
    assert len(stage.acted("refund")) == (0 if gate == "begin" else 2)


async def test_a_lenient_map_over_a_source(net: Net, stage: Board) -> None:
    """M5, M4: a source that fails fails the map also where elements may fail."""
    runtime = await net.runtime(LenientStream)
    stage.errors |= {"charge 0": ValueError("declined"), "read 3": ValueError("gone")}
    outcome = await (await runtime.spawn(LenientStream(count=5))).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.message == "gone"
    assert sorted(stage.acted("refund")) == [1, 2]


class LenientStream(Stream):
    """The same, not atomic."""

    charges = fan_out(Charge, over="orders", batch_size=3, atomic=False)
