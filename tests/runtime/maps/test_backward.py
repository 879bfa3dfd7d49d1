"""Maps rolling back (rules R1-R9, R11, R12)."""

import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rewound import (
    Cancelled,
    Completed,
    Context,
    Failed,
    MapProgress,
    Reactor,
    Results,
    Retry,
    RollbackFailure,
    RollbackIncomplete,
    RollbackProgress,
    fan_out,
    map_each,
    source,
    step,
)
from rewound.runtime.owners.flight import Flight
from tests.runtime.maps.conftest import Outcomes
from tests.runtime.maps.plays import Billing, Board, Charge, Framed, Lenient, Order, Shipping, rows
from tests.runtime.nodes import Net
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


async def test_r1_map_each_goes_back_one_after_another(net: Net, stage: Board) -> None:
    """R1: highest index first, one at a time."""
    runtime = await net.runtime(Order)
    stage.errors["last"] = ValueError("no")
    await (await runtime.spawn(Order, rows(5))).outcome()
    assert stage.acted("refund") == [4, 3, 2, 1, 0]
    assert stage.most == 1


async def test_r1_a_lagging_undo_takes_one_slot(net: Net, stage: Board) -> None:
    """R1, M1: the bound is on outstanding work; the other slots keep moving."""
    runtime = await net.runtime(Shipping)
    stage.errors["last"] = ValueError("no")
    stage.close("recall 9")
    run = await runtime.spawn(Shipping, rows(10))
    await net.settle()
    assert sorted(stage.acted("refund")) == list(range(9))
    assert await run.status() == "rolling_back"
    stage.open("recall 9")
    assert isinstance(await run.outcome(), Failed)
    assert stage.most <= 3


async def test_r3_newest_started_first_and_steps_in_reverse(net: Net, stage: Board) -> None:
    """R3: elements come up newest first; within one, undos run in strictly reverse order."""
    runtime = await net.runtime(Shipping)
    stage.errors["last"] = ValueError("no")
    stage.close(*(f"recall {row}" for row in range(6)))
    run = await runtime.spawn(Shipping, rows(6))
    await net.settle()
    assert sorted(stage.acted("recall")) == [3, 4, 5]
    for row in (3, 4, 5, 0, 1, 2):
        stage.open(f"recall {row}")
        await net.settle()
    await run.outcome()
    assert stage.acted("recall")[3:] == [2, 1, 0]
    for row in range(6):
        assert stage.log.index(f"recall {row}") < stage.log.index(f"refund {row}")


async def test_r4_outcomes(net: Net, stage: Board, outcomes: Outcomes) -> None:
    """R4: undone, failed, not needed (failed by itself); each element exactly one."""
    runtime = await net.runtime(Lenient)
    stage.errors |= {"charge 1": ValueError("a"), "refund 2": ValueError("b"), "last": ValueError("c")}
    run = await runtime.spawn(Lenient, rows(4))
    await run.outcome()
    assert outcomes.by_index() == {0: "undone", 1: "not_needed", 2: "failed", 3: "undone"}


async def test_r4_nothing_to_undo(net: Net, stage: Board, outcomes: Outcomes) -> None:
    """R4: an element whose steps have no undo needs none."""
    runtime = await net.runtime(Plain)
    stage.errors["last"] = ValueError("no")
    await (await runtime.spawn(Plain, rows(300))).outcome()
    assert outcomes.by_index() == dict.fromkeys(range(300), "not_needed")


class Looks(Reactor[int]):
    """An element that changes nothing."""

    row: int

    @step
    async def look(self) -> int:
        """Look."""
        return self.row


class Plain(Framed):
    """A map of those."""

    charges = fan_out(Looks, over="rows", after="prepare")

    @step(after=charges)
    async def last(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "last")


async def test_r5_failures_of_an_element_that_failed_by_itself(
    net: Net, stage: Board, outcomes: Outcomes
) -> None:
    """R5, S5: what could not be undone when the element rolled itself back is listed, and not tried again."""
    runtime = await net.runtime(Shipping)
    stage.errors |= {"send 1": ValueError("no"), "refund 1": ValueError("closed")}
    run = await runtime.spawn(Shipping, rows(2))
    outcome = await run.outcome()
    failure = RollbackFailure("charge", "undo", "ValueError", "closed", "charges", 1)
    assert outcome.rollback_failures == [failure]
    assert outcomes.by_index()[1] == "failed"
    assert stage.times("refund 1") == 1


async def test_s5_failures_of_a_completed_run_are_listed(net: Net, stage: Board) -> None:
    """S5, M5: a map that completes in spite of a failing element says what that could not undo."""
    runtime = await net.runtime(Lenient)
    stage.errors |= {"charge 1": ValueError("no"), "void 1": ValueError("closed")}
    run = await runtime.spawn(Lenient, rows(3))
    failure = RollbackFailure("charge", "compensate", "ValueError", "closed", "charges", 1)
    assert await run.outcome() == Completed(2, [failure])
    (summary,) = [each async for each in runtime.runs()]
    journal = await net.memory.load(run.id, limit=0)
    assert summary.status == "completed"
    assert journal is not None
    assert journal.head.retained


async def test_a_failed_rollback_is_retained(net: Net, stage: Board) -> None:
    """Architecture 4: a run with rollback failures does not expire, also where elements have them."""
    runtime = await net.runtime(Billing)
    stage.errors |= {"refund 1": ValueError("closed"), "last": ValueError("no")}
    run = await runtime.spawn(Billing, rows(3))
    await run.outcome()
    journal = await net.memory.load(run.id, limit=0)
    assert journal is not None
    assert journal.head.retained


async def test_v2_undo_repeats_only_the_undos_that_failed(net: Net, stage: Board, outcomes: Outcomes) -> None:
    """V2: with rollback failures left, retry is refused, and undo repeats only those."""
    runtime = await net.runtime(Shipping)
    stage.errors |= {"refund 1": ValueError("closed"), "recall 2": ValueError("gone"), "last": KeyError("no")}
    run = await runtime.spawn(Shipping, rows(4))
    assert len((await run.outcome()).rollback_failures) == 2
    with pytest.raises(RollbackIncomplete, match="2 rollback failures"):
        await run.retry()
    stage.log.clear()
    del stage.errors["refund 1"]
    await run.undo()
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.rollback_failures == [RollbackFailure("send", "undo", "ValueError", "gone", "charges", 2)]
    assert sorted(stage.log) == ["recall 2", "refund 1"]
    stage.errors.clear()
    await run.undo()
    assert (await run.outcome()).rollback_failures == []
    await run.retry()
    assert await run.outcome() == Completed(4)


async def test_v3_progress(net: Net, stage: Board) -> None:
    """V3: total, settled, outstanding and failed are visible while it lasts."""
    runtime = await net.runtime(Shipping)
    stage.errors |= {"last": ValueError("no"), "refund 8": ValueError("closed")}
    stage.close("recall 3")
    run = await runtime.spawn(Shipping, rows(10))
    assert (await run.maps()) == {}
    await net.settle()
    back = RollbackProgress(total=10, settled=9, failed=1)
    assert await run.maps() == {"charges": MapProgress(10, 10, 10, 0, back)}
    assert back.outstanding == 1
    stage.open("recall 3")
    await run.outcome()
    assert await run.maps() == {"charges": MapProgress(10, 10, 10, 0, RollbackProgress(10, 10, 1))}


async def test_r7_earlier_steps_wait_for_every_element(net: Net, stage: Board) -> None:
    """R7: while one element is outstanding, the steps before the map are left alone."""
    runtime = await net.runtime(Billing)
    stage.errors["last"] = ValueError("no")
    stage.close("refund 0")
    run = await runtime.spawn(Billing, rows(5))
    await net.settle()
    assert "unprepare" not in stage.log
    stage.open("refund 0")
    await run.outcome()
    assert stage.log[-1] == "unprepare"


async def test_r8_memory_does_not_grow_with_the_elements(net: Net, stage: Board) -> None:
    """R8, M4, scenario 12: only elements in flight are in memory, forward and back."""
    runtime = await net.runtime(Sampled)
    stage.errors["last"] = ValueError("no")
    samples: list[int] = []
    net.stage.log = Sampling(samples)
    await (await runtime.spawn(Sampled, rows(1000))).outcome()
    assert len(samples) > 5
    assert max(samples) <= 20


class Sampled(Billing):
    """A map of ten at a time."""

    charges = fan_out(Charge, over="rows", after="prepare", batch_size=10)


class Sampling(list[str]):
    """A log that counts the elements in memory now and then."""

    def __init__(self, samples: list[int]) -> None:
        super().__init__()
        self._samples = samples

    def append(self, name: str) -> None:
        """Take note."""
        super().append(name)
        if name.endswith("50"):
            self._samples.append(sum(isinstance(each, Flight) for each in gc.get_objects()))


async def test_scenario_12_ten_at_a_time(net: Net) -> None:
    """Scenario 12: ten undos that take 5 ms each take a tenth of the time of one after another."""
    took: list[float] = []
    for reactor in (Waiting, OneByOne):
        runtime = await net.runtime(reactor, state={"clock": net.clock})
        run = await runtime.spawn(reactor, rows(100))
        await net.settle()
        began = net.clock.now()
        while await run.status() != "failed":
            await net.advance(0.005)
        took.append(net.clock.now() - began)
    assert took[0] * 8 <= took[1]


class Waits(Reactor[int]):
    """An element whose undo takes 5 ms."""

    row: int

    @step
    async def go(self) -> int:
        """Go."""
        return self.row

    @go.undo
    async def come(self, ctx: Context[dict[str, Any]]) -> None:
        """Wait."""
        await ctx.state["clock"].sleep(0.005)


class Waiting(Reactor[None]):
    """A map of those, ten at a time."""

    rows: list[int]
    moves = fan_out(Waits, over="rows", batch_size=10)

    @step(after=moves)
    async def end(self) -> None:
        """Fail."""
        raise ValueError


class OneByOne(Waiting):
    """The same, one after another."""

    moves = map_each(Waits, over="rows")


async def test_r9_a_map_none_of_whose_elements_began(net: Net, stage: Board, outcomes: Outcomes) -> None:
    """R9: it settles at once."""
    runtime = await net.runtime(Late)
    stage.errors["beside"] = ValueError("no")
    stage.close("read", "beside")
    run = await runtime.spawn(Late())
    await net.settle()
    stage.open("beside")
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcomes.by_index() == {}
    assert [each["total"] for each in outcomes.of("rollback.completed")] == [0]


class Late(Reactor[None]):
    """A map whose source takes its time, beside a step."""

    @source
    async def orders(self, ctx: Stagehand) -> AsyncIterator[int]:
        """Wait."""
        await act(ctx, "read")
        yield 1

    charges = fan_out(Charge, over=orders)

    @step
    async def beside(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "beside")


async def test_r11_log_events(net: Net, stage: Board, outcomes: Outcomes) -> None:
    """R11: how a rollback of a map begins, how each element ends, how it is completed."""
    runtime = await net.runtime(Shipping)
    stage.errors |= {"refund 1": ValueError("closed"), "last": ValueError("no")}
    run = await runtime.spawn(Shipping, rows(3))
    await run.outcome()
    names = {"reactor": "Shipping", "run": run.id, "map": "charges"}
    event = "rewound.map.rollback"
    (started,) = outcomes.of("rollback.started")
    assert started == {**names, "total": 3, "batch_size": 3, "event": f"{event}.started"}
    elements = {each["index"]: each for each in outcomes.of("rollback.element")}
    assert elements[1] == {
        **names,
        "index": 1,
        "outcome": "failed",
        "failures": 1,
        "event": f"{event}.element",
    }
    (completed,) = outcomes.of("rollback.completed")
    assert completed == {**names, "total": 3, "failed": 1, "event": f"{event}.completed"}


async def test_s10_an_undo_does_not_check_inputs_again(net: Net, stage: Board) -> None:
    """S10, R5: an element whose inputs cannot be made any more is a rollback failure, not the end of it."""
    runtime = await net.runtime(Fickle)
    stage.errors["last"] = ValueError("no")
    Choosy.refuses = False
    stage.close("last")
    run = await runtime.spawn(Fickle, rows(3))
    await net.settle()
    Choosy.refuses = True
    stage.open("last")
    outcome = await run.outcome()
    (failure,) = outcome.rollback_failures
    assert (failure.map_step, failure.element_index, failure.error) == ("charges", 1, "InputError")
    assert sorted(stage.acted("refund")) == [0, 2]
    assert stage.log[-1] == "unprepare"
    Choosy.refuses = False
    await run.undo()
    assert (await run.outcome()).rollback_failures == []
    assert sorted(stage.acted("refund")) == [0, 1, 2]


class Choosy(Charge):
    """An element that may refuse its row."""

    refuses = False

    def __post_init__(self) -> None:
        """Refuse, or not."""
        if Choosy.refuses and self.row == 1:
            raise ValueError("not this one")


class Fickle(Billing):
    """A map of those."""

    charges = fan_out(Choosy, over="rows", after="prepare")


# -- undo_all


class Bulk(Framed):
    """A map that is taken back in one call."""

    charges = fan_out(Charge, over="rows", after="prepare", atomic=False)

    @charges.undo_all(retry=Retry(attempts=2, delay=5, jitter=0))
    async def refund_all(self, charges: Results[str], ctx: Stagehand) -> None:
        """Take back what completed."""
        await act(ctx, "refund all")
        ctx.state["log"].append(" ".join([each async for each in charges]))

    @step(after=charges)
    async def last(self, ctx: Stagehand) -> int:
        """Act."""
        await act(ctx, "last")
        return len(self.rows)


async def test_r12_one_call_takes_back_all(net: Net, stage: Board) -> None:
    """R12: `undo_all` sees the completed results; what failed has taken itself back."""
    runtime = await net.runtime(Bulk)
    stage.errors |= {"charge 1": ValueError("declined"), "last": ValueError("no")}
    run = await runtime.spawn(Bulk, rows(3))
    outcome = await run.outcome()
    assert outcome.rollback_failures == []
    assert stage.log[stage.log.index("last") + 1 :] == ["refund all", "charge 0 charge 2", "unprepare"]
    assert stage.acted("void") == [1]
    assert stage.keys["refund all"] == [f"{run.id}:charges:0:undo_all"]


async def test_r12_a_failure_is_one(net: Net, stage: Board) -> None:
    """R12, V2: it is tried as often as it says; then it is one rollback failure, which undo repeats."""
    runtime = await net.runtime(Bulk)
    stage.errors |= {"refund all": ValueError("closed"), "last": ValueError("no")}
    run = await runtime.spawn(Bulk, rows(3))
    await net.advance(10)
    outcome = await run.outcome()
    assert outcome.rollback_failures == [RollbackFailure("charges", "undo_all", "ValueError", "closed")]
    assert stage.times("refund all") == 2
    assert stage.log[-1] == "unprepare"
    stage.errors.clear()
    stage.log.clear()
    await run.undo()
    assert (await run.outcome()).rollback_failures == []
    assert stage.log == ["refund all", "charge 0 charge 1 charge 2"]


async def test_r12_a_success_is_not_repeated(net: Net, stage: Board) -> None:
    """R12, V2: undo repeats what an element could not undo by itself, not the call that went well."""
    runtime = await net.runtime(Bulk)
    stage.errors |= {"charge 1": ValueError("declined"), "void 1": ValueError("closed")}
    stage.errors["last"] = ValueError("no")
    run = await runtime.spawn(Bulk, rows(3))
    assert len((await run.outcome()).rollback_failures) == 1
    stage.errors.clear()
    stage.log.clear()
    await run.undo()
    assert (await run.outcome()).rollback_failures == []
    assert stage.log == ["void 1"]


async def test_r12_nothing_has_completed(net: Net, stage: Board) -> None:
    """R12: without completed results there is no call."""
    runtime = await net.runtime(Bulk)
    stage.errors |= {"charge 0": ValueError("declined"), "last": ValueError("no")}
    await (await runtime.spawn(Bulk, rows(1))).outcome()
    assert "refund all" not in stage.log


async def test_r12_in_the_middle_of_the_map(net: Net, stage: Board) -> None:
    """R12, V1: elements that were cut off compensate themselves; one call takes back what completed."""
    runtime = await net.runtime(Bulk)
    stage.close("charge 2")
    run = await runtime.spawn(Bulk, rows(3))
    await net.settle()
    await run.undo()
    assert await run.outcome() == Cancelled("", undone=True)
    assert stage.log[-4:] == ["void 2", "refund all", "charge 0 charge 1", "unprepare"]


async def test_r12_a_cancelled_map(net: Net, stage: Board) -> None:
    """R12, V1: a later undo compensates what was cut off, then takes back the rest in one call."""
    runtime = await net.runtime(Bulk)
    stage.close("charge 2")
    run = await runtime.spawn(Bulk, rows(3))
    await net.settle()
    await run.cancel()
    assert await run.outcome() == Cancelled("")
    assert "refund all" not in stage.log
    await run.undo()
    assert await run.outcome() == Cancelled("", undone=True)
    assert stage.log[-4:] == ["void 2", "refund all", "charge 0 charge 1", "unprepare"]
