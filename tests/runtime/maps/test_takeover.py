"""A node dies in the middle of a map: another one goes on with it (rules M3, R6, R10, S3, S9)."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest

from rewound import (
    Cancelled,
    Completed,
    Failed,
    Page,
    Reactor,
    Retry,
    RollbackFailure,
    RunStuck,
    StepError,
    compose,
    fan_out,
    source,
    step,
)
from rewound.runtime.engine.messages import Settled, Success
from rewound.runtime.owners.letters import ElementMail
from rewound.storage.faults import Fault
from tests.runtime.maps.conftest import Outcomes
from tests.runtime.maps.plays import Billing, Board, Charge, Framed, Order, Shipping, TwoSteps, rows
from tests.runtime.nodes import LEASE, Net
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


async def test_m3_forward(net: Net, stage: Board) -> None:
    """M3, lessons 25, 26: settled elements do not run again, those in flight resume at their last step."""
    first, second = await net.peer(Shipping), await net.peer(Shipping)
    stage.close("send 1", "charge 4")
    run = await first.runtime.spawn(Shipping, rows(20))
    await net.settle()
    stage.close("send 7")
    await net.settle()
    await first.kill()
    done = Counter(stage.log)
    stage.open("send 1", "charge 4", "send 7")
    await net.advance(2 * LEASE)
    assert await (await second.runtime.get(run.id, Shipping)).outcome() == Completed(20)
    again = {name for name, times in Counter(stage.log).items() if times > 1}
    assert again <= {"send 1", "charge 4", "send 7"}
    assert {"send 1", "charge 4"} <= again
    assert done["charge 1"] == 1
    assert stage.most <= 6
    assert stage.keys["send 1"][0] == stage.keys["send 1"][1]


async def test_m3_elements_that_were_waiting_for_a_retry(net: Net, stage: Board) -> None:
    """M3, lesson 12: attempts made before the crash count, and the wait does not begin anew."""
    first, second = await net.peer(Retrying), await net.peer(Retrying)
    stage.errors["charge 0"] = ValueError("not yet")
    run = await first.runtime.spawn(Retrying, rows(1))
    await net.advance(30)
    assert stage.times("charge 0") == 2
    await first.kill()
    await net.advance(100)
    outcome = await (await second.runtime.get(run.id, Retrying)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.attempts == 3
    assert stage.times("charge 0") == 3


class Tries(Reactor[str]):
    """An element with three attempts, of which nothing but their end is recorded."""

    row: int

    @step(retry=Retry(attempts=3, delay=25, backoff="fixed", jitter=0))
    async def charge(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"charge {self.row}")


class Retrying(Billing):
    """A map of those."""

    charges = fan_out(Tries, over="rows", after="prepare")


async def test_m3_an_elements_timeout_does_not_begin_anew(net: Net, stage: Board) -> None:
    """S12, lesson 12: the timeout of a child is a total, across a takeover."""
    first, second = await net.peer(Hurried), await net.peer(Hurried)
    stage.close("charge 0")
    run = await first.runtime.spawn(Hurried, rows(1))
    await net.settle()
    await first.kill()
    await net.advance(2 * LEASE)
    assert stage.times("charge 0") == 2
    await net.advance(2 * LEASE + 1)
    outcome = await (await second.runtime.get(run.id, Hurried)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "TimeoutError"


class Quick(Charge, timeout=4 * LEASE):
    """An element that may take four leases."""


class Hurried(Billing):
    """A map of those."""

    charges = fan_out(Quick, over="rows", after="prepare")


@pytest.mark.parametrize("reactor", [Shipping, Order])
async def test_r6_backward(net: Net, stage: Board, outcomes: Outcomes, reactor: type[Billing]) -> None:
    """R6, S9: the rollback goes on behind the last recorded undo; no recorded one runs again."""
    first, second = await net.peer(reactor), await net.peer(reactor)
    stage.errors["last"] = ValueError("no")
    stage.close("refund 6")
    run = await first.runtime.spawn(reactor, rows(10))
    await net.settle()
    await first.kill()
    stage.open("refund 6")
    await net.advance(2 * LEASE)
    assert isinstance(await (await second.runtime.get(run.id, reactor)).outcome(), Failed)
    assert stage.times("refund 6") == 2
    assert all(stage.times(f"refund {row}") == 1 for row in range(10) if row != 6)
    assert stage.log[-1] == "unprepare"
    assert set(outcomes.by_index().values()) == {"undone"}
    assert len(outcomes.of("rollback.started")) == 1


async def test_c4_failures_found_before_a_crash(net: Net, stage: Board) -> None:
    """C4, R5: rollback failures of elements that settled before the crash are in the list, each once."""
    first, second = await net.peer(Shipping), await net.peer(Shipping)
    stage.errors |= {"last": ValueError("no"), "recall 9": ValueError("a"), "refund 5": ValueError("b")}
    stage.close("refund 6")
    run = await first.runtime.spawn(Shipping, rows(10))
    await net.settle()
    await first.kill()
    stage.open("refund 6")
    await net.advance(2 * LEASE)
    outcome = await (await second.runtime.get(run.id, Shipping)).outcome()
    assert sorted(outcome.rollback_failures, key=lambda each: each.element_index or 0) == [
        RollbackFailure("charge", "undo", "ValueError", "b", "charges", 5),
        RollbackFailure("send", "undo", "ValueError", "a", "charges", 9),
    ]


async def test_s3_elements_of_a_failing_map_run_again_until_they_settle(net: Net, stage: Board) -> None:
    """S3, M5: after a crash the map still stops: no further element begins, those in flight settle first."""
    first, second = await net.peer(Shipping), await net.peer(Shipping)
    stage.errors["charge 0"] = ValueError("declined")
    stage.close("send 1", "charge 2")
    run = await first.runtime.spawn(Shipping, rows(10))
    await net.settle()
    await first.kill()
    stage.open("send 1", "charge 2")
    await net.advance(2 * LEASE)
    outcome = await (await second.runtime.get(run.id, Shipping)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.step == "charges[0]/charge"
    assert sorted(set(stage.acted("charge"))) == [0, 1, 2]
    assert stage.times("charge 1") == 1
    assert stage.times("send 1") == stage.times("charge 2") == 2
    assert sorted(stage.acted("refund")) == [1, 2]


class Parallel(Charge):
    """An element of two steps at the same time."""

    @step
    async def pack(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"pack {self.row}")

    @pack.undo
    async def unpack(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"unpack {self.row}")

    returns = "charge"


class Packing(Billing):
    """A map of those."""

    charges = fan_out(Parallel, over="rows", after="prepare")


async def test_s3_siblings_within_an_element(net: Net, stage: Board) -> None:
    """S3: a sibling in flight when its element failed runs again after a crash, and is then undone."""
    first, second = await net.peer(Packing), await net.peer(Packing)
    stage.errors["charge 0"] = ValueError("declined")
    stage.close("pack 0")
    run = await first.runtime.spawn(Packing, rows(1))
    await net.settle()
    await first.kill()
    stage.open("pack 0")
    await net.advance(2 * LEASE)
    await (await second.runtime.get(run.id, Packing)).outcome()
    assert stage.log[-4:] == ["pack 0", "void 0", "unpack 0", "unprepare"]
    assert stage.times("pack 0") == 2


@pytest.mark.parametrize("verb", ["undo", "cancel"])
async def test_v1_a_verb_after_a_takeover(net: Net, stage: Board, verb: str) -> None:
    """V1, S2: what was in flight at the crash has begun, so an undo compensates it, whenever it comes."""
    first = await net.peer(Shipping)
    stage.close("charge 0", "send 1")
    run = await first.runtime.spawn(Shipping, rows(2))
    await net.settle()
    await first.kill()
    second = await net.peer(Shipping)
    async with net.background() as tasks:
        tasks.start_soon(getattr(second.runtime, verb), run.id)
        await net.advance(2 * LEASE)
    if verb == "cancel":
        async with net.background() as tasks:
            tasks.start_soon(second.runtime.undo, run.id)
            await net.advance(LEASE)
    assert await (await second.runtime.get(run.id, Shipping)).outcome() == Cancelled("", undone=True)
    assert stage.acted("void") == [0]
    assert stage.acted("refund") == [1]
    assert stage.log[-1] == "unprepare"


@pytest.mark.parametrize("verb", ["undo", "cancel"])
async def test_o5_a_crash_while_bodies_are_cut_off(net: Net, stage: Board, verb: str) -> None:
    """O5: an element that was told to stop, and whose process died before it had, is not waited for."""
    first = await net.peer(Simple)
    stage.close("go 0", "go 1")
    run = await first.runtime.spawn(Simple, rows(3))
    await net.settle()
    stopped = first.faults.trace.count("put") + 1
    first.faults.plan.append(Fault("crash", at=stopped, when="after", method="put"))
    async with net.background() as tasks:
        tasks.start_soon(getattr(first.runtime, verb), run.id)
    assert first.faults.crashed.is_set()
    await first.kill()
    second = await net.peer(Simple)
    await net.advance(2 * LEASE)
    outcome = await (await second.runtime.get(run.id, Simple)).outcome()
    assert outcome == Cancelled("", undone=verb == "undo")


class Bare(Reactor[int]):
    """An element without any handler."""

    row: int

    @step
    async def go(self, ctx: Stagehand) -> int:
        """Act."""
        await act(ctx, f"go {self.row}")
        return self.row


class Simple(Framed):
    """A map of those."""

    charges = fan_out(Bare, over="rows", after="prepare", batch_size=2)

    @step(after=charges)
    async def last(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "last")


async def test_scenario_10_two_nodes_claim_one_run(net: Net, stage: Board) -> None:
    """Scenario 10: of two nodes that would take over, one goes on with the map."""
    first = await net.peer(Shipping)
    others = [await net.peer(Shipping), await net.peer(Shipping)]
    stage.close("charge 1")
    run = await first.runtime.spawn(Shipping, rows(5))
    await net.settle()
    await first.kill()
    stage.open("charge 1")
    await net.advance(2 * LEASE)
    for other in others:
        assert await (await other.runtime.get(run.id, Shipping)).outcome() == Completed(5)
    assert stage.overlaps == []
    assert all(stage.times(f"charge {row}") == 1 + (row == 1) for row in range(5))


async def test_a_node_that_lost_its_lease_writes_nothing_more(net: Net, stage: Board) -> None:
    """Architecture 4: an owner of a map whose claim is lost ends, and what it still does is refused."""
    slow = await net.peer(Shipping, plan=[Fault("hang", at=3, method="put")])
    run = await slow.runtime.spawn(Shipping, rows(5))
    await net.settle()
    await net.memory.leave(slow.node)  # as if its process had been stopped for a lease
    other = await net.peer(Shipping)
    await net.settle()
    handle = await other.runtime.get(run.id, Shipping)
    assert await handle.outcome() == Completed(5)
    ended = await net.memory.space(run.id, "0:charges")
    slow.faults.proceed()
    await net.advance(LEASE)
    assert await net.memory.space(run.id, "0:charges") == ended


@pytest.mark.parametrize("way", ["forward", "back"])
async def test_5_7_a_step_that_kills_its_process(net: Net, stage: Board, way: str) -> None:
    """Architecture 5.7: after too many deaths in a row the run is stuck; a retry by hand goes on."""
    name = "charge 1" if way == "forward" else "refund 1"
    if way == "back":
        stage.errors["last"] = ValueError("no")
    stage.close(name)
    peer = await net.peer(Billing, max_recoveries=2)
    run = await peer.runtime.spawn(Billing, rows(3))
    for _ in range(3):
        await net.settle()
        await peer.kill()
        peer = await net.peer(Billing, max_recoveries=2)
        await net.advance(2 * LEASE)
    handle = await peer.runtime.get(run.id, Billing)
    with pytest.raises(RunStuck, match="died 3 times in a row while elements of charges were in flight"):
        await handle.outcome()
    assert stage.times(name) == 3
    async with net.background() as tasks:
        tasks.start_soon(handle.retry)
        await net.advance(LEASE)
    await peer.kill()
    stage.open(name)
    peer = await net.peer(Billing, max_recoveries=2)
    await net.advance(2 * LEASE)
    outcome = await (await peer.runtime.get(run.id, Billing)).outcome()
    assert isinstance(outcome, Completed if way == "forward" else Failed)
    assert stage.times(name) == 5


async def test_5_7_undo_of_a_stuck_map(net: Net, stage: Board) -> None:
    """Section 3: a run that is stuck in a map can be undone; the body that kills is not run again."""
    stage.close("charge 1")
    peer = await net.peer(Billing, max_recoveries=0)
    run = await peer.runtime.spawn(Billing, rows(3))
    await net.settle()
    await peer.kill()
    peer = await net.peer(Billing, max_recoveries=0)
    await net.advance(2 * LEASE)
    handle = await peer.runtime.get(run.id, Billing)
    assert await handle.status() == "stuck"
    async with net.background() as tasks:
        tasks.start_soon(handle.undo)
        await net.advance(LEASE)
    assert await handle.outcome() == Cancelled("", undone=True)
    assert stage.times("charge 1") == 1
    assert stage.acted("void") == [1]
    assert sorted(stage.acted("refund")) == [0, 2]


async def test_5_7_progress_starts_the_count_again(net: Net, stage: Board) -> None:
    """Architecture 5.7: deaths count only while nothing settles in between."""
    peer = await net.peer(Shipping, max_recoveries=1)
    stage.close("charge 0", "charge 1", "charge 2", "charge 3", "charge 4")
    run = await peer.runtime.spawn(Shipping, rows(5))
    for row in range(5):
        await net.settle()
        await peer.kill()
        stage.open(f"charge {row}")
        peer = await net.peer(Shipping, max_recoveries=1)
        await net.advance(2 * LEASE)
    assert await (await peer.runtime.get(run.id, Shipping)).outcome() == Completed(5)


async def test_o4_signals_that_come_twice_or_late(net: Net, stage: Board) -> None:
    """O4, scenario 10: a settle signal that is repeated, or comes when its element is gone, has no effect."""
    peer = await net.peer(Shipping)
    stage.close("charge 1", "send 2")
    run = await peer.runtime.spawn(Shipping, rows(3))
    await net.settle()
    (owner,) = peer.services.owners[run.id]._work.maps.forward.values()
    at = net.clock.time()
    for index, name in ((0, "charge"), (0, "send"), (2, "charge"), (7, "charge")):
        settled = Settled(at, name, 1, 0, Success(b"\xa5again"))
        owner.signal((index, name), ElementMail(index, settled))
    await net.settle()
    assert stage.times("send 2") == 1
    stage.open("charge 1", "send 2")
    assert await run.outcome() == Completed(3)
    assert max(Counter(stage.log).values()) == 1
    results = await run.step(Shipping.charges)
    assert await results.all() == ["send 0", "send 1", "send 2"]


async def test_s10_inputs_that_fit_no_more_after_a_takeover(net: Net, stage: Board) -> None:
    """S10, R5: an element that was being taken back when its node died, and cannot be any more, is listed."""
    first = await net.peer(Fickle)
    stage.errors["last"] = ValueError("no")
    stage.close("refund 1")
    run = await first.runtime.spawn(Fickle, rows(3))
    await net.settle()
    await first.kill()
    Choosy.refuses = True
    try:
        second = await net.peer(Fickle)
        await net.advance(2 * LEASE)
        outcome = await (await second.runtime.get(run.id, Fickle)).outcome()
    finally:
        Choosy.refuses = False
    (failure,) = outcome.rollback_failures
    assert (failure.element_index, failure.error) == (1, "InputError")
    assert stage.log[-1] == "unprepare"


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


FAULTS: Sequence[Fault] = [
    Fault("fail", at=at, when=when, method=method)
    for method, count in (("put", 6), ("space", 6))
    for at in range(1, count)
    for when in ("before", "after")
]


class Streamed(Shipping):
    """The same, over pages."""

    @source
    async def pages(self, cursor: int | None) -> AsyncIterator[Page[int]]:
        """Yield one row a page."""
        for row in self.rows[cursor or 0 :]:
            yield Page([row], row + 1)

    charges = fan_out(TwoSteps, over=pages, after="prepare", batch_size=3)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: f"{each.method}-{each.at}-{each.when}")
@pytest.mark.parametrize("bad", ["", "last", "charge 2"])
@pytest.mark.parametrize("reactor", [Shipping, Streamed])
async def test_r10_storage_that_fails(
    net: Net, stage: Board, fault: Fault, bad: str, reactor: type[Billing]
) -> None:
    """R10, lesson 9: a storage failure in the middle delays the map; nothing is lost, slots come back."""
    if bad:
        stage.errors[bad] = ValueError("no")
    peer = await net.peer(reactor, plan=[fault], concurrency=4)
    run = await peer.runtime.spawn(reactor, rows(5))
    await net.advance(3 * LEASE)
    outcome = await run.outcome()
    if bad:
        assert isinstance(outcome, Failed)
        assert outcome.rollback_failures == []
        completed = {row for row in range(5) if stage.times(f"send {row}")}
        assert {row for row in range(5) if stage.times(f"recall {row}")} == completed
        assert stage.log[-1] == "unprepare"
    else:
        assert outcome == Completed(5)
    assert peer.services.slots.take(4) == 4


async def test_a_composed_element_is_adopted_with_its_child(net: Net, stage: Board) -> None:
    """C1, M3: an element whose composed child was in flight goes on inside that, and is undone whole."""
    first, second = await net.peer(Composed), await net.peer(Composed)
    stage.close("charge 1")
    stage.errors["after 0"] = ValueError("no")
    run = await first.runtime.spawn(Composed, rows(2))
    await net.settle()
    await first.kill()
    stage.open("charge 1")
    await net.advance(2 * LEASE)
    outcome = await (await second.runtime.get(run.id, Composed)).outcome()
    assert isinstance(outcome, Failed)
    assert stage.times("charge 0") == 1
    assert stage.acted("refund").count(0) == 1
    assert stage.acted("refund").count(1) == 1


class Wrapped(Reactor[str]):
    """An element that composes a child."""

    row: int
    inner = compose(Charge)

    @step(after=inner)
    async def after(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"after {self.row}")

    @after.compensate
    async def mend(self, error: StepError, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"mend {self.row}")


class Composed(Framed):
    """A map of those."""

    charges = fan_out(Wrapped, over="rows", after="prepare")

    @step(after=charges)
    async def last(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "last")


@pytest.mark.parametrize("verb", ["undo", "cancel"])
async def test_a_composed_child_of_an_element_hears_of_a_stop_after_a_takeover(
    net: Net, stage: Board, verb: str
) -> None:
    """C1, V1: the child in flight at the crash is told to stop with its element, and loses no undo."""
    first = await net.peer(Composed)
    stage.close("charge 0", "after 1")
    run = await first.runtime.spawn(Composed, rows(2))
    await net.settle()
    await first.kill()
    second = await net.peer(Composed)
    async with net.background() as tasks:
        tasks.start_soon(getattr(second.runtime, verb), run.id)
        await net.advance(2 * LEASE)
    if verb == "cancel":
        async with net.background() as tasks:
            tasks.start_soon(second.runtime.undo, run.id)
            await net.advance(LEASE)
    assert await (await second.runtime.get(run.id, Composed)).outcome() == Cancelled("", undone=True)
    assert stage.acted("void") == [0]
    assert stage.acted("mend") == [1]
    assert stage.acted("refund") == [1]
