"""Scenarios of docs/rules.md section 8, crashed before and after each of their storage operations (O2)."""

import pytest

from rewound.testing import Scenario, crash_sweep
from tests.sweep.plays import Deep, Family, Inline, Kept, Listed, Nested, Root
from tests.sweep.scenes import (
    Retried,
    Spawned,
    UndoneAtEnd,
    UndoneOnTheWay,
    at_most,
    failures,
    in_order,
    stands,
    taken_back,
)

pytestmark = pytest.mark.anyio

FIVE = at_most(5, "items/")

SCENARIOS: dict[str, Scenario] = {
    "1: a step after the map fails": Spawned(
        Listed(count=20, fail=True), taken_back, FIVE, in_order("last", "items/", "rows")
    ),
    "2: element 7 fails": Spawned(
        Listed(count=20, bad=7), taken_back, FIVE, in_order("items/", "rows"), may_vary=True
    ),
    "3: undone at its end": UndoneAtEnd(
        Listed(count=12), taken_back, FIVE, in_order("last", "items/", "rows")
    ),
    "4: the undo of an element fails": Spawned(
        Listed(count=12, fail=True, bad_undo=3), stands("items/3/one"), failures(("items", 3)), FIVE
    ),
    "6: a map in a child": Spawned(Root(count=3), at_most(1, "child/items/")),
    "6: a root step after it fails": Spawned(
        Root(count=3, fail=True),
        taken_back,
        in_order("last", "child/summed", "child/items/", "child/rows", "first"),
    ),
    "6: an element of it fails": Spawned(
        Root(count=3, bad=1), taken_back, in_order("child/items/", "child/rows", "first")
    ),
    "6: two levels deep": Spawned(Deep(count=3), at_most(1, "child/inner/items/")),
    "6: two levels deep, a root step fails": Spawned(
        Deep(count=3, fail=True),
        taken_back,
        in_order("last", "child/inner/summed", "child/inner/items/", "child/inner/rows", "first"),
    ),
    "6: two levels deep, an element fails": Spawned(
        Deep(count=3, bad=1), taken_back, in_order("child/inner/items/", "child/inner/rows", "first")
    ),
    "8: one failure of a map that keeps the rest": Spawned(Kept(count=12, bad=3), FIVE),
    "13: a step of the child fails": Spawned(
        Family(bad_child=True), taken_back, in_order("child/c2", "child/c1", "first")
    ),
    "13: a step after the child fails": Spawned(
        Family(fail=True), taken_back, in_order("child/c2", "child/c1", "first")
    ),
    "14: retried": Retried(Family()),
    "inline, a step after the map fails": Spawned(
        Inline(count=4, fail=True),
        taken_back,
        at_most(1, "items/"),
        in_order("items/3", "items/2", "items/1", "items/0", "rows"),
    ),
    "inline, an element fails": Spawned(Inline(count=4, bad=2), taken_back, in_order("items/", "rows")),
    "maps in a map, a step after them fails": Spawned(Nested(count=3, fail=True), taken_back),
    "maps in a map, an element fails": Spawned(Nested(count=3, bad=2), taken_back, may_vary=True),
    "undone in the middle of a map": UndoneOnTheWay(
        Listed(count=12), taken_back, in_order("items/", "rows"), after="items/6/two"
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_scenario_survives_crashes(name: str) -> None:
    """O2, R6, R10: wherever a crash cuts a run off, it ends as it may end without one."""
    sweep = await crash_sweep(SCENARIOS[name], every=5)
    assert sweep.crashes >= 2 * (sweep.operations // 5)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_scenario_survives_a_crash_anywhere(name: str) -> None:
    """The same with a crash at every single operation."""
    sweep = await crash_sweep(SCENARIOS[name])
    print(f"{name}: {sweep.operations} operations, {sweep.crashes} crashes")  # noqa: T201 - `pytest -rP` shows it
    assert sweep.crashes >= 2 * sweep.operations
