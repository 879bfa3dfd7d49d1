"""The scenarios of docs/rules.md, section 8, that are about maps, on every storage."""

import anyio
import pytest

from rewound import (
    Cancelled,
    Completed,
    Failed,
    Reactor,
    RollbackFailure,
    RollbackInProgress,
    RunFailed,
    Runtime,
    compose,
    fan_out,
    step,
)
from rewound.storage.opening import open_storage
from tests.runtime.maps.conftest import Outcomes
from tests.runtime.maps.plays import Billing, Board, Charge, Framed, Hiding, Lenient, Order, rows
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


async def test_scenario_1_a_later_step_fails(runtime: Runtime, board: Board) -> None:
    """Scenario 1, R1, R7, lesson 19: all are undone, never over 50 at a time, then what came before."""
    board.errors["last"] = ValueError("no")
    run = await runtime.spawn(Billing, rows(1000))
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.step, outcome.rollback_failures) == ("last", [])
    assert sorted(board.acted("refund")) == list(range(1000))
    assert board.log[-1] == "unprepare"
    assert board.log.index("untotal") < min(map(board.log.index, ["refund 0", "refund 999"]))
    assert board.most == 50


async def test_scenario_2_an_element_fails(runtime: Runtime, board: Board, outcomes: Outcomes) -> None:
    """Scenario 2, M5, M6, R4: each that started has an outcome; 7's is `not_needed`; others have none."""
    board.errors["charge 7"] = ValueError("card declined")
    run = await runtime.spawn(Billing, rows(200))
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    started = set(board.acted("charge"))
    assert 7 in started
    assert len(started) < 200
    found = outcomes.by_index()
    assert found.keys() == started
    assert found.pop(7) == "not_needed"
    assert set(found.values()) == {"undone"}
    assert sorted(board.acted("refund")) == sorted(started - {7})
    assert board.acted("void") == [7]
    assert board.log[-1] == "unprepare"


async def test_scenario_3_undo_by_hand(runtime: Runtime, board: Board) -> None:
    """Scenario 3, V1: later steps first, elements, earlier steps; rolling back meanwhile, then cancelled."""
    run = await runtime.spawn(Billing, rows(20))
    assert await run.result() == 20
    board.log.clear()
    board.close("refund 3")
    await run.undo("a mistake")
    await board.until(lambda: len(board.acted("refund")) == 20)
    assert await run.status() == "rolling_back"
    board.open("refund 3")
    assert await run.outcome() == Cancelled("a mistake", undone=True)
    assert board.log[0] == "untotal"
    assert sorted(board.acted("refund")) == list(range(20))
    assert board.log[-1] == "unprepare"


async def test_scenario_4_an_undo_fails(runtime: Runtime, board: Board) -> None:
    """Scenario 4, R5, S5: earlier steps are still undone; the failure names map, index and step."""
    board.errors |= {"refund 3": ValueError("closed"), "last": ValueError("no")}
    run = await runtime.spawn(Billing, rows(10))
    outcome = await run.outcome()
    assert outcome.rollback_failures == [
        RollbackFailure("charge", "undo", "ValueError", "closed", "charges", 3)
    ]
    assert sorted(board.acted("refund")) == list(range(10))
    assert board.log[-1] == "unprepare"
    with pytest.raises(RunFailed, match="1 rollback failures"):
        await run.result()


class Child(Framed):
    """A child with a map, one element at a time, and a step after it."""

    charges = fan_out(Charge, over="rows", after="prepare", batch_size=1)

    @step(after=charges)
    async def close(self, ctx: Stagehand) -> int:
        """Act."""
        await act(ctx, "close")
        return len(self.rows)

    @close.undo
    async def reopen(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "reopen")


class Middle(Reactor[int]):
    """A child that composes the child."""

    rows: list[int]

    @step
    async def begin(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "begin")

    @begin.undo
    async def unbegin(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "unbegin")

    inner = compose(Child, after=begin)


class Root(Reactor[int]):
    """A root whose child has the map."""

    rows: list[int]

    @step
    async def first(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "first")

    @first.undo
    async def unfirst(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "unfirst")

    child = compose(Child, after=first)

    @step(after=child)
    async def last(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "last")

    returns = child


class Deep(Root):
    """The same, two levels deep."""

    child = compose(Middle, after="first")


@pytest.mark.parametrize("root", [Root, Deep])
async def test_scenario_6_a_composed_child_with_a_map(
    runtime: Runtime, board: Board, root: type[Root]
) -> None:
    """Scenario 6, C2: the map settles to the top-level owner, and the run goes on."""
    assert await runtime.run(root, rows(4)) == 4
    assert board.acted("charge") == [0, 1, 2, 3]
    assert board.log[-1] == "last"


@pytest.mark.parametrize("root", [Root, Deep])
async def test_scenario_6_a_step_after_the_child_fails(
    runtime: Runtime, board: Board, root: type[Root]
) -> None:
    """Scenario 6, C3: elements first, then the child's earlier steps, then the root's."""
    board.errors["last"] = ValueError("no")
    run = await runtime.spawn(root, rows(3))
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.step == "last"
    back = board.log[board.log.index("last") + 1 :]
    assert [name for name in back if name != "unbegin"] == [
        *("reopen", "refund 2", "refund 1", "refund 0", "unprepare", "unfirst")
    ]
    assert ("unbegin" in back) is (root is Deep)


@pytest.mark.parametrize(("root", "path"), [(Root, "child"), (Deep, "child/inner")])
async def test_scenario_6_an_element_fails(
    runtime: Runtime, board: Board, root: type[Root], path: str
) -> None:
    """Scenario 6, C1, C3, lesson 13: the child rolls back before the root; the failure keeps its place."""
    board.errors["charge 2"] = ValueError("declined")
    run = await runtime.spawn(root, rows(5))
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.message) == ("ValueError", "declined")
    assert outcome.step == f"{path}/charges[2]/charge"
    back = board.log[board.log.index("void 2") + 1 :]
    assert [name for name in back if name != "unbegin"] == ["refund 1", "refund 0", "unprepare", "unfirst"]


class Wide(Billing):
    """A larger batch."""

    charges = fan_out(Charge, over="rows", after="prepare", batch_size=200)


@pytest.mark.parametrize(
    ("reactor", "count", "bound"), [(Billing, 500, 50), (Billing, 20, 20), (Wide, 500, 200)]
)
async def test_scenario_7_bounds(
    runtime: Runtime, board: Board, reactor: type[Billing], count: int, bound: int
) -> None:
    """Scenario 7, M1, M2: as many as the batch size are in flight at once, never more; back the same."""
    board.errors["last"] = ValueError("no")
    names = [f"charge {row}" for row in range(bound)]
    board.close(*names, f"refund {count - 1}")
    run = await runtime.spawn(reactor, rows(count))
    await board.until(lambda: board.running.total() == bound)
    board.open(*names)
    await board.until(lambda: len(board.acted("refund")) == count)
    assert (await run.maps())["charges"].settled == count
    board.open(f"refund {count - 1}")
    assert isinstance(await run.outcome(), Failed)
    assert board.most == bound
    assert len(board.acted("charge")) == len(board.acted("refund")) == count


async def test_scenario_8_not_atomic(runtime: Runtime, board: Board) -> None:
    """Scenario 8, M5: the map completes; one failure is among the outcomes, which are in index order."""
    board.errors["charge 3"] = ValueError("declined")

    run = await runtime.spawn(Lenient, rows(60))
    assert await run.result() == 59
    assert board.acted("void") == [3]
    assert board.acted("refund") == []


@pytest.mark.parametrize("reactor", [Billing, Order])
async def test_scenario_9_a_record_is_gone(
    url: str, board: Board, outcomes: Outcomes, reactor: type[Billing]
) -> None:
    """Scenario 9, R4, R5: an element whose record is gone is reported once, inline and fanned out."""
    board.errors["last"] = ValueError("no")
    board.close("last")
    storage = Hiding(open_storage(url))
    async with Runtime(storage, state={"stage": board}) as runtime:
        run = await runtime.spawn(reactor, rows(5))
        await board.until(lambda: "last" in board.log)
        storage.lost = ("0:charges", 3)
        board.open("last")
        outcome = await run.outcome()
    (failure,) = outcome.rollback_failures
    assert (failure.step, failure.kind, failure.error) == ("charges", "undo", "Unavailable")
    assert (failure.map_step, failure.element_index) == ("charges", 3)
    assert outcomes.by_index() == {4: "undone", 3: "unavailable", 2: "undone", 1: "undone", 0: "undone"}
    assert sorted(board.acted("refund")) == [0, 1, 2, 4]
    assert board.log[-1] == "unprepare"


async def test_scenario_10_two_undos(runtime: Runtime, board: Board) -> None:
    """Scenario 10: of two undo requests one is carried out, and each element is undone once."""
    run = await runtime.spawn(Billing, rows(30))
    await run.result()
    refused: list[RollbackInProgress] = []

    async def undo() -> None:
        try:
            await run.undo()
        except RollbackInProgress as error:
            refused.append(error)

    board.close("refund 0")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(undo)
        tasks.start_soon(undo)
    board.open("refund 0")
    assert await run.outcome() == Cancelled("", undone=True)
    assert len(refused) == 1
    assert sorted(board.acted("refund")) == list(range(30))


async def test_scenario_11_verbs_while_rolling_back(runtime: Runtime, board: Board) -> None:
    """Scenario 11, R2: undo and cancel are refused while elements are taken back; nothing changes."""
    board.errors["last"] = ValueError("no")
    board.close("refund 2")
    run = await runtime.spawn(Billing, rows(5))
    await board.until(lambda: len(board.acted("refund")) == 5)
    for verb in (run.undo, run.cancel, run.retry):
        with pytest.raises(RollbackInProgress):
            await verb()
    assert await run.status() == "rolling_back"
    board.open("refund 2")
    assert isinstance(await run.outcome(), Failed)
    assert sorted(board.acted("refund")) == list(range(5))


async def test_scenario_14_retry(runtime: Runtime, board: Board) -> None:
    """Scenario 14, V2: a rolled-back run is retried: every element again, under new keys, and completes."""
    board.errors["last"] = ValueError("no")
    run = await runtime.spawn(Billing, rows(5))
    await run.outcome()
    board.errors.clear()
    await run.retry()
    assert await run.outcome() == Completed(5)
    for row in range(5):
        first, second = board.keys[f"charge {row}"]
        assert first != second
    assert len(board.acted("refund")) == 5
