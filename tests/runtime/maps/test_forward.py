"""Maps going forward: the bound, the order, what a failing element does (rules M1-M7)."""

import pytest

from rewound import (
    Cancelled,
    Failed,
    Fatal,
    Halt,
    MapProgress,
    Reactor,
    Results,
    Retry,
    Skipped,
    element,
    fan_out,
    step,
    value,
)
from tests.runtime.maps.conftest import Outcomes
from tests.runtime.maps.plays import Billing, Board, Charge, Framed, Order, Shipping, rows
from tests.runtime.nodes import Net
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


async def test_m1_map_each_runs_one_after_another(net: Net, stage: Board) -> None:
    """M1: elements of `map_each` run in index order, one at a time."""
    runtime = await net.runtime(Order)
    assert await runtime.run(Order, rows(5)) == 5
    assert stage.acted("charge") == [0, 1, 2, 3, 4]
    assert stage.most == 1


async def test_m1_a_lagging_element_takes_one_slot(net: Net, stage: Board) -> None:
    """M1: the other slots keep moving, whoever lags."""
    runtime = await net.runtime(Shipping)
    stage.close("charge 0")
    run = await runtime.spawn(Shipping, rows(10))
    await net.settle()
    assert sorted(stage.acted("send")) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert (await run.maps())["charges"] == MapProgress(total=10, started=10, settled=9, failed=0)
    stage.open("charge 0")
    assert await run.result() == 10
    assert stage.most <= 3


async def test_m1_waiting_for_a_retry_counts_as_in_flight(net: Net, stage: Board) -> None:
    """M1, M3: an element that waits for its next attempt keeps its place among the `batch_size`."""
    runtime = await net.runtime(Patient)
    for row in (0, 1):
        stage.errors[f"charge {row}"] = ValueError("not yet")
    run = await runtime.spawn(Patient, rows(5))
    await net.settle()
    assert sorted(stage.acted("charge")) == [0, 1]
    stage.errors.clear()
    await net.advance(10)
    assert await run.result() == 5
    assert sorted(stage.acted("charge")) == [0, 0, 1, 1, 2, 3, 4]


class Tries(Charge):
    """An element with three attempts."""

    @step(retry=Retry(attempts=3, delay=10, backoff="fixed", jitter=0, never=(KeyError,)))
    async def charge(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"charge {self.row}")


class Patient(Billing):
    """A map of those."""

    charges = fan_out(Tries, over="rows", after="prepare", batch_size=2)


async def test_s1_retries_come_first(net: Net, stage: Board) -> None:
    """S1: an element fails after its last attempt, and is compensated once."""
    runtime = await net.runtime(Patient)
    stage.errors["charge 1"] = ValueError("never")
    run = await runtime.spawn(Patient, rows(3))
    await net.advance(30)
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.attempts == 3
    assert stage.times("charge 1") == 3
    assert stage.times("void 1") == 1


async def test_an_element_has_its_own_timeout(net: Net, stage: Board) -> None:
    """S12: a child's `timeout` is that of each element, from its own beginning."""
    runtime = await net.runtime(Hurried)
    stage.close("charge 1")
    run = await runtime.spawn(Hurried, rows(2))
    await net.advance(6)
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step) == ("TimeoutError", "charges[1]")
    assert stage.times("void 1") == 1


class Quick(Charge, timeout=5):
    """An element that may take five seconds."""


class Hurried(Billing):
    """A map of those."""

    charges = fan_out(Quick, over="rows", after="prepare")


async def test_concurrency_bounds_the_bodies_of_elements(net: Net, stage: Board) -> None:
    """Architecture 2: `concurrency` holds for elements too; their turn comes in index order."""
    runtime = await net.runtime(Billing, concurrency=3)
    stage.errors["last"] = ValueError("no")
    run = await runtime.spawn(Billing, rows(20))
    assert isinstance(await run.outcome(), Failed)
    assert stage.most == 3
    assert sorted(stage.acted("refund")) == list(range(20))


async def test_an_empty_map_completes_at_once(net: Net, stage: Board) -> None:
    """M2, R9: no elements, no wait, forward and back."""
    runtime = await net.runtime(Billing)
    stage.errors["last"] = ValueError("no")
    run = await runtime.spawn(Billing, rows(0))
    assert isinstance(await run.outcome(), Failed)
    assert stage.log == ["prepare", "total", "last", "untotal", "unprepare"]
    assert (await run.maps())["charges"].total == 0


@pytest.mark.parametrize("bad", [0, 4, 9])
async def test_m5_the_first_failure_stops_the_map(
    net: Net, stage: Board, outcomes: Outcomes, bad: int
) -> None:
    """M5, M6, lesson 28: wherever it is, no further element starts, and those in flight settle."""
    runtime = await net.runtime(Shipping)
    stage.errors[f"charge {bad}"] = ValueError("declined")
    run = await runtime.spawn(Shipping, rows(10))
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.message, outcome.step) == (
        "ValueError",
        "declined",
        f"charges[{bad}]/charge",
    )
    started = stage.acted("charge")
    assert len(started) <= bad + 3
    assert outcomes.by_index().keys() == set(started)
    assert [each["index"] for each in outcomes.of("element.failed")] == [bad]
    assert sorted(stage.acted("recall")) == sorted(set(started) - {bad})
    assert stage.log[-1] == "unprepare"


async def test_m5_elements_in_flight_settle(net: Net, stage: Board) -> None:
    """M5, S3: those in flight when one fails run to their end, and are then taken back."""
    runtime = await net.runtime(Shipping)
    stage.errors["charge 1"] = ValueError("declined")
    stage.close("charge 0")
    run = await runtime.spawn(Shipping, rows(10))
    await net.settle()
    assert "recall 2" not in stage.log
    stage.open("charge 0")
    await run.outcome()
    assert [name for name in stage.log if name.endswith(" 0")] == [
        "charge 0",
        "send 0",
        "recall 0",
        "refund 0",
    ]


async def test_m5_two_fail_together(net: Net, stage: Board) -> None:
    """M5: the first failure is the map's; the second element has rolled itself back as well."""
    runtime = await net.runtime(Billing)
    stage.errors |= {"charge 1": ValueError("one"), "charge 2": KeyError("two")}
    stage.close("charge 1", "charge 2")
    run = await runtime.spawn(Billing, rows(4))
    await net.settle()
    stage.open("charge 2")
    await net.settle()
    stage.open("charge 1")
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.step == "charges[2]/charge"
    assert sorted(stage.acted("void")) == [1, 2]


async def test_m6_an_element_rolls_itself_back_before_it_reports(net: Net, stage: Board) -> None:
    """M6: the steps of a failing element are undone before the map's rollback begins."""
    runtime = await net.runtime(Shipping)
    stage.errors["send 0"] = ValueError("no")
    stage.close("refund 0")
    run = await runtime.spawn(Shipping, rows(1))
    await net.settle()
    assert await run.status() == "running"
    stage.open("refund 0")
    await run.outcome()
    assert stage.log == ["prepare", "charge 0", "send 0", "refund 0", "unprepare"]


async def test_m7_a_collector_fails_as_part_of_the_map(net: Net, stage: Board) -> None:
    """M7: it runs once over the results; if it raises, the elements are taken back."""
    runtime = await net.runtime(Collected)
    stage.errors["sum"] = ValueError("no")
    run = await runtime.spawn(Collected, rows(4))
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.step == "summed"
    assert stage.times("sum") == 1
    assert sorted(stage.acted("refund")) == [0, 1, 2, 3]
    stage.errors.clear()
    assert await runtime.run(Collected, rows(4)) == 4


class Collected(Framed):
    """A map with a collector."""

    charges = fan_out(Charge, over="rows", after="prepare")

    @charges.collect
    async def summed(self, charges: Results[str], ctx: Stagehand) -> int:
        """Count."""
        await act(ctx, "sum")
        return len(await charges.all())


async def test_s6_an_element_that_halts_ends_only_itself(net: Net, stage: Board) -> None:
    """S6: the map goes on; the halted element has no value, and nothing of it is undone."""
    runtime = await net.runtime(Listing)
    stage.errors |= {"charge 1": Halt("sold out")}
    run = await runtime.spawn(Listing, rows(3))
    assert await run.result() == ["completed", "halted: sold out", "completed"]
    await run.undo()
    assert isinstance(await run.outcome(), Cancelled)
    assert sorted(stage.acted("refund")) == [0, 2]
    assert stage.acted("void") == []


class Listing(Framed):
    """A map whose outcomes are listed."""

    charges = fan_out(Charge, over="rows", after="prepare", atomic=False)

    @charges.collect
    async def listed(self, charges: Results[str]) -> list[str]:
        """List them."""
        return [
            f"{each.status}: {each.error.message}" if each.error else each.status
            async for each in charges.outcomes()
        ]


async def test_m5_without_atomic_a_failure_is_an_outcome(net: Net, stage: Board) -> None:
    """M5: the others are kept, the outcomes are in index order; back, only those are undone."""
    runtime = await net.runtime(Listing)
    stage.errors |= {"charge 0": ValueError("a"), "charge 2": ValueError("c")}
    run = await runtime.spawn(Listing, rows(4))
    assert await run.result() == ["failed: a", "completed", "failed: c", "completed"]
    assert (await run.maps())["charges"] == MapProgress(total=4, started=4, settled=4, failed=2)
    await run.undo()
    await run.outcome()
    assert sorted(stage.acted("refund")) == [1, 3]
    assert sorted(stage.acted("void")) == [0, 2]


async def test_s2_inputs_that_do_not_fit_fail_the_element(net: Net, stage: Board) -> None:
    """S2, lesson 14: an element whose row does not fit has not started: it is named, not compensated."""
    runtime = await net.runtime(Loose)
    run = await runtime.spawn(Loose, {"things": [1, "two", 3]})
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step, outcome.attempts) == ("InputError", "charges[1]", 0)
    assert list(outcome.fields) == ["row"]
    assert sorted(stage.acted("refund")) == sorted(stage.acted("charge"))
    assert stage.acted("void") == []


class Loose(Reactor[None]):
    """A map over anything."""

    things: list[object]
    charges = fan_out(Charge, over="things")

    @step(after=charges)
    async def end(self) -> None:
        """End."""


async def test_s2_what_all_elements_share_does_not_fit(net: Net, stage: Board) -> None:
    """S2: nothing of the map begins; what came before is undone."""
    runtime = await net.runtime(Shared)
    run = await runtime.spawn(Shared, rows(3))
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step, outcome.attempts) == ("InputError", "charges", 0)
    assert stage.log == ["prepare", "unprepare"]


class Rated(Charge):
    """An element that takes two inputs."""

    rate: int
    currency: str
    note: str = "none"

    @step
    async def charge(self, ctx: Stagehand) -> str:
        """Tell what it was given."""
        await act(ctx, f"charge {self.row}")
        return f"{self.row} at {self.rate} {self.currency} {self.note}"


class Shared(Framed):
    """A map whose elements share a value that does not fit."""

    @step
    async def rate(self) -> object:
        """Return what is no rate."""
        return "much"

    charges = fan_out(Rated, over="rows", after="prepare", bind={"rate": rate, "currency": value("EUR")})

    @step(after=charges)
    async def end(self) -> None:
        """End."""

    returns = end


async def test_inputs_are_bound(net: Net) -> None:
    """API, maps: an element takes its row, a step's result, an input, a value, and its own defaults."""
    runtime = await net.runtime(Bound)
    assert await runtime.run(Bound, rows(2)) == ["0 at 3 EUR none", "1 at 3 EUR none"]


class Bound(Framed):
    """A map with all kinds of inputs."""

    @step
    async def rate(self) -> int:
        """Return a rate."""
        return 3

    charges = fan_out(
        Rated, over="rows", after="prepare", bind={"row": element(), "rate": rate, "currency": value("EUR")}
    )

    @charges.collect
    async def listed(self, charges: Results[str]) -> list[str]:
        """List them."""
        return await charges.all()


async def test_lesson_18_an_element_is_not_run_again_as_a_whole(net: Net, stage: Board) -> None:
    """Lesson 18, S1: only the step with attempts left runs again, what came before it keeps its result."""
    runtime = await net.runtime(Sturdy)
    stage.errors["send 0"] = Fatal("no")
    run = await runtime.spawn(Sturdy, rows(1))
    await run.outcome()
    assert stage.log == ["prepare", "charge 0", "send 0", "refund 0", "unprepare"]


class Sends(Charge):
    """An element whose second step has attempts."""

    @step(retry=3)
    async def send(self, charge: str, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"send {self.row}")

    returns = send


class Sturdy(Billing):
    """A map of those."""

    charges = fan_out(Sends, over="rows", after="prepare")


async def test_s7_a_skipped_step_of_an_element(net: Net, stage: Board) -> None:
    """S7: its value is the element's; it is not undone."""
    runtime = await net.runtime(Skipping)
    run = await runtime.spawn(Skipping, rows(2))
    assert await run.result() == ["skipped 0", "skipped 1"]
    await run.undo()
    await run.outcome()
    assert stage.log == ["prepare", "unprepare"]


class Skips(Reactor[str]):
    """An element that skips its step."""

    row: int

    @step
    async def charge(self) -> str | Skipped[str]:
        """Skip."""
        return Skipped(f"skipped {self.row}")

    @charge.undo
    async def refund(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"refund {self.row}")


class Skipping(Framed):
    """A map of those."""

    charges = fan_out(Skips, over="rows", after="prepare")

    @charges.collect
    async def listed(self, charges: Results[str]) -> list[str]:
        """List them."""
        return await charges.all()


async def test_s3_a_failing_sibling_stops_the_map(net: Net, stage: Board) -> None:
    """S3: what is in flight settles, no further element begins, and the map is taken back with the rest."""
    runtime = await net.runtime(Beside)
    stage.close("charge 0", "charge 1", "beside")
    stage.errors["beside"] = ValueError("no")
    run = await runtime.spawn(Beside, rows(10))
    await net.settle()
    stage.open("beside")
    await net.settle()
    stage.open("charge 0", "charge 1")
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.step == "beside"
    assert sorted(stage.acted("charge")) == sorted(stage.acted("refund")) == [0, 1]


class Beside(Reactor[None]):
    """A map beside a step."""

    rows: list[int]
    charges = fan_out(Charge, over="rows", batch_size=2)

    @step
    async def beside(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "beside")


async def test_s6_a_halt_beside_a_map_lets_it_finish(net: Net, stage: Board) -> None:
    """S6: siblings settle; a map comes to its end, and its results stay."""
    runtime = await net.runtime(Beside)
    stage.errors["beside"] = Halt("enough")
    run = await runtime.spawn(Beside, rows(10))
    await run.outcome()
    assert await run.status() == "halted"
    assert len(stage.acted("charge")) == 10
    assert stage.acted("refund") == []


async def test_the_idempotency_keys_of_elements_differ(net: Net, stage: Board) -> None:
    """API, Context: a key is made of run, path, element, generation and kind."""
    runtime = await net.runtime(Billing)
    stage.errors["last"] = ValueError("no")
    run = await runtime.spawn(Billing, rows(3))
    await run.outcome()
    assert stage.keys["charge 1"] == [f"{run.id}:charges/1/charge:0:forward"]
    assert stage.keys["refund 1"] == [f"{run.id}:charges/1/charge:0:undo"]
    assert stage.keys["charge 2"] != stage.keys["charge 1"]


async def test_over_what_is_no_list(net: Net, stage: Board) -> None:
    """S2: a step that says a list and gives none fails the map, by name, before anything starts."""
    runtime = await net.runtime(Listless)
    outcome = await (await runtime.spawn(Listless())).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step) == ("InputError", "charges")
    assert "only lists and tuples" in outcome.message


class Listless(Reactor[None]):
    """A map over a step that may give nothing."""

    @step
    async def found(self) -> list[int] | None:
        """Find nothing."""
        return None

    charges = fan_out(Charge, over=found)

    @step(after=charges)
    async def end(self) -> None:
        """End."""
