"""Maps in elements, in composed children, in both, to any depth (rules M9, C1-C4)."""

import re
from typing import Any

import pytest

from rewound import (
    Cancelled,
    Completed,
    Failed,
    Halt,
    Reactor,
    Results,
    RollbackFailure,
    RunStuck,
    StepError,
    compose,
    element,
    fan_out,
    map_each,
    step,
)
from rewound.storage.faults import Fault
from rewound.storage.forward import Forward
from rewound.storage.protocol import Cells
from tests.runtime.maps.conftest import Outcomes
from tests.runtime.maps.plays import Board, Charge, Framed, rows
from tests.runtime.nodes import LEASE, Net
from tests.runtime.plays import Stagehand, act

pytestmark = pytest.mark.anyio


class Item(Reactor[str]):
    """The innermost element."""

    name: str

    @step
    async def put(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, f"put {self.name}")

    @put.undo
    async def take(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"take {self.name}")

    @put.compensate
    async def drop(self, error: StepError, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"drop {self.name}")


class Box(Reactor[int]):
    """An element with a map inside, between two steps."""

    name: str

    @step
    async def unpack(self, ctx: Stagehand) -> list[str]:
        """Say what is inside."""
        await act(ctx, f"unpack {self.name}")
        return [f"{self.name}.{number}" for number in range(3)]

    @unpack.undo
    async def shut(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"shut {self.name}")

    items = fan_out(Item, over=unpack, bind={"name": element()}, batch_size=2)

    @step
    async def seal(self, items: Results[str], ctx: Stagehand) -> int:
        """Count."""
        await act(ctx, f"seal {self.name}")
        return len(await items.all())

    @seal.undo
    async def unseal(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, f"unseal {self.name}")


class Truck(Reactor[int]):
    """A map of maps."""

    names: list[str]

    @step
    async def start(self, ctx: Stagehand) -> str:
        """Act."""
        return await act(ctx, "start")

    @start.undo
    async def stop(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "stop")

    boxes = fan_out(Box, over="names", after=start, batch_size=2)

    @step
    async def arrive(self, boxes: Results[int], ctx: Stagehand) -> int:
        """Count."""
        await act(ctx, "arrive")
        return sum([count async for count in boxes])


class Port(Reactor[int]):
    """Three deep: trucks of boxes of items, in a composed child."""

    trucks: list[list[str]]

    class Quay(Reactor[int]):
        """The child that has the outer map."""

        trucks: list[list[str]]
        unloaded = map_each(Truck, over="trucks", bind={"names": element()})

        @unloaded.collect
        async def counted(self, unloaded: Results[int], ctx: Stagehand) -> int:
            """Count."""
            await act(ctx, "counted")
            return sum([count async for count in unloaded])

    quay = compose(Quay)

    @step
    async def leave(self, quay: int, ctx: Stagehand) -> int:
        """Act."""
        await act(ctx, "leave")
        return quay


BOXES = {"names": ["a", "b", "c"]}
TRUCKS = {"trucks": [["a", "b"], ["c"]]}


async def test_m9_a_map_in_an_element(net: Net, stage: Board) -> None:
    """M9: it is a real map, with a batch size of its own."""
    runtime = await net.runtime(Truck)
    assert await runtime.run(Truck, BOXES) == 9
    assert stage.most <= 4
    assert stage.log[-1] == "arrive"


async def test_m9_it_is_taken_back_in_its_place(net: Net, stage: Board) -> None:
    """M9: within an element the later step is undone first, then the inner elements, then earlier steps."""
    runtime = await net.runtime(Truck)
    stage.errors["arrive"] = ValueError("no")
    outcome = await (await runtime.spawn(Truck, BOXES)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.rollback_failures == []
    for box in "abc":
        undone = [name for name in stage.log if re.fullmatch(rf"(unseal|take|shut) {box}(\.\d)?", name)]
        assert undone[0] == f"unseal {box}"
        assert sorted(undone[1:-1]) == [f"take {box}.{number}" for number in range(3)]
        assert undone[-1] == f"shut {box}"
    assert stage.log[-1] == "stop"


async def test_an_inner_element_fails(net: Net, stage: Board) -> None:
    """M6, lesson 13: its map, its element, the outer map and the run fail; each level rolls back first."""
    runtime = await net.runtime(Truck)
    stage.errors["put b.1"] = ValueError("broken")
    outcome = await (await runtime.spawn(Truck, BOXES)).outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.message) == ("ValueError", "broken")
    assert outcome.step == "boxes[1]/items[1]/put"
    assert {name for name in stage.log if name.startswith("drop")} == {"drop b.1"}
    for box in {name.split()[1] for name in stage.log if name.startswith("unpack")}:
        assert stage.times(f"shut {box}") == 1
    put = {name.split()[1] for name in stage.log if name.startswith("put")} - {"b.1"}
    assert {name.split()[1] for name in stage.log if name.startswith("take")} == put
    assert stage.log[-1] == "stop"


async def test_failures_of_inner_elements_are_listed(net: Net, stage: Board) -> None:
    """R5, C4: a rollback failure deep inside names the way to its map; undo repeats only that."""
    runtime = await net.runtime(Truck)
    stage.errors |= {"arrive": ValueError("no"), "take b.2": KeyError("stuck"), "shut c": ValueError("jam")}
    run = await runtime.spawn(Truck, BOXES)
    outcome = await run.outcome()
    assert outcome.rollback_failures == [
        RollbackFailure("put", "undo", "KeyError", "'stuck'", "boxes/1/items", 2),
        RollbackFailure("unpack", "undo", "ValueError", "jam", "boxes", 2),
    ]
    stage.errors.clear()
    stage.log.clear()
    await run.undo()
    assert (await run.outcome()).rollback_failures == []
    assert sorted(stage.log) == ["shut c", "take b.2"]


@pytest.mark.parametrize("bad", ["leave", "counted", "arrive", "seal c", "put c.2"])
async def test_three_deep(net: Net, stage: Board, bad: str) -> None:
    """M9, C3: wherever it fails, everything that completed is undone, once, and nothing else."""
    runtime = await net.runtime(Port)
    assert await runtime.run(Port, TRUCKS) == 9
    stage.log.clear()
    stage.errors[bad] = ValueError("no")
    outcome = await (await runtime.spawn(Port, TRUCKS)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.rollback_failures == []
    undone = {"put": "take", "unpack": "shut", "seal": "unseal", "start": "stop"}
    done = [name for name in stage.log if name.split()[0] in undone and name != bad]
    expected = sorted(" ".join([undone[name.split()[0]], *name.split()[1:]]) for name in done)
    assert sorted(name for name in stage.log if name.split()[0] in undone.values()) == expected


@pytest.mark.parametrize("gate", ["put b.1", "seal a"])
async def test_takeover_in_an_inner_map(net: Net, stage: Board, gate: str) -> None:
    """M3, M9: inner maps are adopted by the element that has them; what was settled does not run again."""
    first, second = await net.peer(Port), await net.peer(Port)
    stage.close(gate)
    run = await first.runtime.spawn(Port, TRUCKS)
    await net.settle()
    await first.kill()
    stage.open(gate)
    await net.advance(2 * LEASE)
    assert await (await second.runtime.get(run.id, Port)).outcome() == Completed(9)
    assert {name for name in stage.log if stage.times(name) > 1} <= {gate, "start", "arrive"}
    assert stage.times(gate) == 2


@pytest.mark.parametrize("gate", ["take b.1", "unseal a", "shut c"])
async def test_takeover_on_the_way_back(net: Net, stage: Board, gate: str) -> None:
    """R6, M9: only the undo that was cut off runs again, however deep it is."""
    first, second = await net.peer(Port), await net.peer(Port)
    stage.close(gate)
    stage.errors["leave"] = ValueError("no")
    run = await first.runtime.spawn(Port, TRUCKS)
    await net.settle()
    await first.kill()
    stage.open(gate)
    await net.advance(2 * LEASE)
    outcome = await (await second.runtime.get(run.id, Port)).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.rollback_failures == []
    undos = [name for name in stage.log if name.split()[0] in ("take", "unseal", "shut")]
    assert {name for name in undos if undos.count(name) > 1} == {gate}
    assert len(undos) == 9 + 3 + 3 + 1


@pytest.mark.parametrize("gate", ["put b.1", "seal b"])
@pytest.mark.parametrize("crash", ["", "crash"])
async def test_undo_in_the_middle_of_an_inner_map(net: Net, stage: Board, gate: str, crash: str) -> None:
    """V1, C1: an undo reaches every level, also after a takeover; nothing that completed is left."""
    peer = await net.peer(Port)
    stage.close(gate)
    run = await peer.runtime.spawn(Port, TRUCKS)
    await net.settle()
    if crash:
        await peer.kill()
        peer = await net.peer(Port)
    async with net.background() as tasks:
        tasks.start_soon(peer.runtime.undo, run.id)
        await net.advance(2 * LEASE)
    assert await (await peer.runtime.get(run.id, Port)).outcome() == Cancelled("", undone=True)
    done = {name for name in stage.log if name.split()[0] in ("put", "unpack", "seal")} - {gate}
    for name in done:
        verb, what = name.split()
        back = {"put": "take", "unpack": "shut", "seal": "unseal"}[verb]
        assert stage.times(f"{back} {what}") == 1
    assert stage.times("drop b.1") == (gate == "put b.1")
    assert stage.times("stop") == stage.times("start") == 1


async def test_a_closing_node_with_inner_maps(net: Net, stage: Board) -> None:
    """Architecture 5.5: maps inside elements go with their node, and are taken up by the next one."""
    first, second = await net.peer(Port), await net.peer(Port)
    stage.close("put b.1")
    run = await first.runtime.spawn(Port, TRUCKS)
    await net.settle()
    async with net.background() as tasks:
        tasks.start_soon(first.runtime.close)
        await net.settle()
    stage.open("put b.1")
    await net.advance(LEASE)
    assert await (await second.runtime.get(run.id, Port)).outcome() == Completed(9)
    assert stage.times("put b.1") == 2


async def test_5_7_an_inner_element_that_kills_its_process(net: Net, stage: Board) -> None:
    """Architecture 5.7: the run is stuck, and goes on by hand, also where the map is inside an element."""
    stage.close("put a.0")
    peer = await net.peer(Truck, max_recoveries=1)
    run = await peer.runtime.spawn(Truck, BOXES)
    for _ in range(2):
        await net.settle()
        await peer.kill()
        peer = await net.peer(Truck, max_recoveries=1)
        await net.advance(2 * LEASE)
    handle = await peer.runtime.get(run.id, Truck)
    with pytest.raises(RunStuck, match="elements of boxes/0/items were in flight"):
        await handle.outcome()
    stage.open("put a.0")
    async with net.background() as tasks:
        tasks.start_soon(handle.retry)
        await net.advance(LEASE)
    assert await handle.outcome() == Completed(9)


async def test_5_7_inner_progress_counts(net: Net, stage: Board) -> None:
    """Architecture 5.7: an element is not stuck while the map inside it gets on."""
    peer = await net.peer(Truck, max_recoveries=1)
    gates = [f"put a.{number}" for number in range(3)] + ["seal a"]
    stage.close(*gates)
    run = await peer.runtime.spawn(Truck, {"names": ["a"]})
    for gate in gates:
        await net.settle()
        await peer.kill()
        stage.open(gate)
        peer = await net.peer(Truck, max_recoveries=1)
        await net.advance(2 * LEASE)
    assert await (await peer.runtime.get(run.id, Truck)).outcome() == Completed(3)


@pytest.mark.parametrize("at", range(1, 12))
async def test_r10_storage_that_fails(net: Net, stage: Board, at: int) -> None:
    """R10, lesson 9: a write of an inner map that fails delays the run; nothing is lost."""
    stage.errors["leave"] = ValueError("no")
    peer = await net.peer(Port, plan=[Fault("fail", at=at * 3, method="put")], concurrency=4)
    run = await peer.runtime.spawn(Port, TRUCKS)
    await net.advance(3 * LEASE)
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.step, outcome.rollback_failures) == ("leave", [])
    for box in "abc":
        assert stage.times(f"shut {box}") >= 1
        assert all(stage.times(f"take {box}.{number}") >= 1 for number in range(3))
    assert peer.services.slots.take(4) == 4


async def test_a_child_that_halts_in_an_element(net: Net, stage: Board) -> None:
    """S6: a composed child that halts halts its element, which ends only itself; the map goes on."""
    runtime = await net.runtime(Halting)
    stage.errors["put b"] = Halt("enough")
    assert await runtime.run(Halting, {"names": ["a", "b", "c"]}) == ["completed", "halted", "completed"]


class Holder(Reactor[str]):
    """An element that composes a child."""

    name: str
    item = compose(Item)


class Halting(Reactor[list[str]]):
    """A map of those."""

    names: list[str]
    held = fan_out(Holder, over="names")

    @held.collect
    async def listed(self, held: Results[str]) -> list[str]:
        """List how they ended."""
        return [each.status async for each in held.outcomes()]


async def test_composed_children_of_elements_keep_the_place_of_failures(net: Net, stage: Board) -> None:
    """C4, R5: a rollback failure in a composed child of an element names step, map and index."""
    runtime = await net.runtime(Failing)
    stage.errors |= {"take b": ValueError("jam")}
    outcome = await (await runtime.spawn(Failing, {"names": ["a", "b"]})).outcome()
    assert outcome.rollback_failures == [RollbackFailure("item/put", "undo", "ValueError", "jam", "held", 1)]


class Failing(Reactor[None]):
    """A map of those, and a step that fails."""

    names: list[str]
    held = fan_out(Holder, over="names")

    @step(after=held)
    async def fail(self) -> None:
        """Fail."""
        raise ValueError


async def test_maps_of_children_are_told_apart(net: Net, stage: Board) -> None:
    """V3: progress of a map in a composed child is under its path; those inside elements are not listed."""
    runtime = await net.runtime(Port)
    run = await runtime.spawn(Port, TRUCKS)
    await run.result()
    assert list(await run.maps()) == ["quay/unloaded"]


async def test_two_children_of_one_kind(net: Net, stage: Board, outcomes: Outcomes) -> None:
    """C1: the same reactor composed twice has two maps, each with its own elements."""
    runtime = await net.runtime(Pair)
    stage.errors["end"] = ValueError("no")
    run = await runtime.spawn(Pair, rows(2))
    outcome = await run.outcome()
    assert outcome.rollback_failures == []
    assert sorted(stage.acted("charge")) == [0, 0, 1, 1]
    assert sorted(stage.acted("refund")) == [0, 0, 1, 1]
    assert list(await run.maps()) == ["one/charges", "two/charges"]
    assert len({key for keys in stage.keys.values() for key in keys}) == len(
        [key for keys in stage.keys.values() for key in keys]
    )


class Inner(Framed):
    """A child with a map."""

    charges = fan_out(Charge, over="rows", after="prepare")


class Pair(Reactor[None]):
    """Two of those at the same time."""

    rows: list[int]
    one = compose(Inner)
    two = compose(Inner)

    @step(after=[one, two])
    async def end(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "end")


async def test_a_sibling_of_a_composed_map_fails(net: Net, stage: Board) -> None:
    """S3, C1: a child is told to stop, its map begins nothing more, settles, and is taken back."""
    runtime = await net.runtime(Siblings)
    stage.close("charge 0", "beside")
    stage.errors["beside"] = ValueError("no")
    run = await runtime.spawn(Siblings, rows(5))
    await net.settle()
    stage.open("beside")
    await net.settle()
    stage.open("charge 0")
    outcome = await run.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.step == "beside"
    assert stage.log == [*("beside", "prepare", "charge 0", "refund 0", "unprepare")] or sorted(
        stage.log[:2]
    ) == ["beside", "prepare"]
    assert stage.log[2:] == ["charge 0", "refund 0", "unprepare"]


class Narrow(Framed):
    """A child with a map of one at a time."""

    charges = map_each(Charge, over="rows", after="prepare")


class Siblings(Reactor[None]):
    """One of those beside a step."""

    rows: list[int]
    child = compose(Narrow)

    @step
    async def beside(self, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "beside")


def nested(depth: int) -> type[Reactor[Any]]:
    """Make maps in maps, so many levels deep, of one element each."""
    made: type[Reactor[Any]] = Item
    for level in range(depth):
        made = _around(made, level)
    return made


def _around(inner: type[Reactor[Any]], level: int) -> type[Reactor[Any]]:
    class Level(Reactor[None], name=f"Level{level}"):
        """One level."""

        name: str

        @step
        async def names(self) -> list[str]:
            """Give one name."""
            return [self.name]

        inside = fan_out(inner, over=names, bind={"name": element()})

        @step(after=inside)
        async def end(self) -> None:
            """End."""

    return Level


class Scales(Forward):
    """A storage that weighs what is written of maps."""

    weight = 0

    async def put(self, cells: Cells) -> int:
        """Weigh, and write."""
        self.weight += len(cells.header or b"") + sum(map(len, cells.cells.values()))
        return await self.inner.put(cells)


async def test_eight_deep_the_bytes_grow_linearly(net: Net) -> None:
    """Maps nested 8 deep: what is written grows with the depth, not with its square."""
    weights: list[int] = []
    for depth in (2, 4, 8):
        reactor, scales = nested(depth), Scales(net.memory)
        runtime = await net.runtime(reactor, storage=scales)
        run = await runtime.spawn(reactor, {"name": "x"})
        await run.result()
        await runtime.close()
        weights.append(scales.weight)
    assert weights[2] - weights[1] <= 2.2 * (weights[1] - weights[0])
