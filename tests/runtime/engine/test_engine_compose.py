"""Composed children: a run inside a run, one entry in its parent's rollback (rules C1-C4, S3, S4, S6)."""

import pytest

from rewound.runtime.declare import Plan
from rewound.runtime.engine import messages as m
from tests.runtime.engine.plans import composed, plan_for, step
from tests.runtime.engine.world import World, error_of

INNER = plan_for("c1", step("c2", "c1"))


def family(*, tail: bool = True) -> Plan:
    """Make a root of step a, a child of c1 and c2, and step b, one after the other."""
    steps = [step("a"), composed("child", INNER, "a")]
    return plan_for(*steps, *([step("b", "child")] if tail else []))


def handlers(world: World) -> list[str]:
    """List the handlers that settled, and in which level, in order."""
    return [word for word in world.story() if "undone" in word or "compensated" in word]


def test_c1_a_child_runs_inside_its_parent() -> None:
    """C1: the child's steps run once their parent's step is reached, in the same journal."""
    world = World(family())
    world.succeed("a")
    assert set(world.bodies) == {"child/c1"}
    world.succeed("child/c1", "child/c2")
    assert set(world.bodies) == {"b"}
    world.succeed("b")
    assert world.state.status == "completed"


def test_scenario_13_a_step_of_the_child_fails() -> None:
    """Scenario 13: where c2 fails, the child has rolled back before the root's a is undone."""
    world = World(family())
    world.succeed("a", "child/c1")
    world.fail("child/c2")
    world.hand_back(3)
    assert handlers(world) == ["child: compensated c2", "child: undone c1", "undone a"]
    assert world.state.status == "failed"


def test_scenario_13_a_step_after_the_child_fails() -> None:
    """Scenario 13: where b fails, the child is undone as a whole in its place, newest step first."""
    world = World(family())
    world.succeed("a", "child/c1", "child/c2")
    world.fail("b")
    world.hand_back(4)
    assert handlers(world) == [
        "compensated b",
        "child: undone c2",
        "child: undone c1",
        "undone child",
        "undone a",
    ]
    assert world.state.status == "failed"


def test_s4_a_child_stands_at_its_completion() -> None:
    """S4: a child is undone in its parent's order, between what completed after and before it."""
    plan = plan_for(
        composed("child", plan_for("c")), step("early"), step("late"), step("last", "late", "child")
    )
    world = World(plan)
    world.succeed("early", "child/c", "late")
    world.fail("last")
    world.hand_back(4)
    assert handlers(world) == [
        "compensated last",
        "undone late",
        "child: undone c",
        "undone child",
        "undone early",
    ]


def test_the_failure_of_a_child_keeps_its_place_and_its_words() -> None:
    """Lesson 13: class and message come through; the step is named with its way from the root."""
    world = World(family())
    world.succeed("a")
    world.handle(world.settled("child/c1", m.Failure(error_of("c1"))))
    world.hand_back()
    error = world.state.steps["child"].error
    assert error is not None
    assert (error.type, error.message, error.step) == ("Boom", "c1 broke", "child/c1")


def test_s6_a_child_that_halts_halts_its_parent() -> None:
    """S6: it does not turn into a success with nothing in it, and nothing is undone."""
    world = World(family())
    world.succeed("a", "child/c1")
    world.halt("child/c2")
    assert world.state.status == "halted"
    assert handlers(world) == []


def test_a_halted_run_can_be_undone_with_its_child() -> None:
    """V1: undone by hand, what the halted child had completed is taken back first."""
    world = World(family())
    world.succeed("a", "child/c1")
    world.halt("child/c2")
    world.ask("undo")
    world.hand_back(2)
    assert handlers(world) == ["child: undone c1", "compensated child", "undone a"]
    assert world.state.status == "cancelled"


def test_s3_a_child_stops_when_a_sibling_fails() -> None:
    """S3: what the child has in flight settles, nothing more starts in it, and it rolls back first."""
    world = World(plan_for(composed("child", INNER), step("sibling")))
    world.fail("sibling")
    assert set(world.bodies) == {"child/c1"}
    assert not world.bodies["child/c1"].cut
    world.succeed("child/c1")
    world.hand_back(2)
    assert handlers(world) == ["child: undone c1", "compensated sibling"]
    assert world.state.status == "failed"


def test_v1_an_undo_cuts_the_bodies_of_a_child() -> None:
    """V1: bodies in flight are cut off and compensated at every depth, the rest is undone."""
    world = World(plan_for(step("a"), composed("child", plan_for(composed("inner", INNER)), "a")))
    world.succeed("a", "child/inner/c1")
    world.ask("undo")
    world.end_cut("child/inner/c2")
    world.hand_back(3)
    assert handlers(world) == [
        "child/inner: compensated c2",
        "child/inner: undone c1",
        "undone a",
    ]
    assert world.state.status == "cancelled"


def test_v1_cancel_leaves_a_child_as_it_is_and_undo_takes_it_back() -> None:
    """V1: cancel undoes nothing in the child either; a later undo compensates and undoes there too."""
    world = World(family())
    world.succeed("a", "child/c1")
    world.ask("cancel")
    world.end_cut("child/c2")
    assert world.state.status == "cancelled"
    assert handlers(world) == []
    world.ask("undo")
    world.hand_back(3)
    assert handlers(world) == ["child: compensated c2", "child: undone c1", "compensated child", "undone a"]
    assert world.state.status == "cancelled"


def test_a_completed_run_is_undone_with_its_child() -> None:
    """Undone by hand: the later steps, the child, the earlier steps."""
    world = World(family())
    world.succeed("a", "child/c1", "child/c2", "b")
    world.ask("undo")
    world.hand_back(4)
    assert handlers(world) == ["undone b", "child: undone c2", "child: undone c1", "undone child", "undone a"]


def test_c4_a_childs_rollback_failure_is_listed_once_and_repeated_by_hand() -> None:
    """C4, V2: the failure is in the root's list, once; retry is refused; undo repeats only that undo."""
    world = World(family())
    world.succeed("a", "child/c1")
    world.fail("child/c2")
    world.hand_back()
    world.fail_handler()
    world.hand_back()
    assert world.state.status == "failed"
    assert [(each.step, each.kind) for each in world.state.rollback_failures] == [("child/c1", "undo")]
    assert world.ask("retry") == []
    world.ask("undo")
    assert world.handler is not None
    assert (world.handler.path, world.handler.step) == (("child",), "c1")
    world.hand_back()
    assert world.state.status == "failed"
    assert world.state.rollback_failures == []
    assert world.ask("retry") != []


def test_c4_a_failed_undo_inside_a_completed_child_is_repeated_by_hand() -> None:
    """C4: also where the child had completed and was undone in its place."""
    world = World(family())
    world.succeed("a", "child/c1", "child/c2")
    world.fail("b")
    world.hand_back()
    world.fail_handler()
    world.hand_back(2)
    assert [(each.step, each.kind) for each in world.state.rollback_failures] == [("child/c2", "undo")]
    world.ask("undo")
    world.hand_back()
    assert world.state.status == "failed"
    assert world.state.rollback_failures == []


def test_retry_runs_a_child_again() -> None:
    """V2: a new generation runs every step again, those of children too."""
    world = World(family())
    world.succeed("a")
    world.fail("child/c1")
    world.hand_back(2)
    world.ask("retry")
    world.succeed("a", "child/c1", "child/c2", "b")
    assert world.state.status == "completed"


@pytest.mark.parametrize("crashed", [True, False])
def test_a_child_goes_on_after_a_takeover(crashed: bool) -> None:  # noqa: FBT001
    """C2, O2: the child's body in flight runs again; what it had recorded does not."""
    world = World(family())
    world.succeed("a", "child/c1")
    world.die(crashed=crashed)
    world.handle()
    assert set(world.bodies) == {"child/c2"}
    world.succeed("child/c2", "b")
    assert world.state.status == "completed"


def test_a_child_that_was_not_opened_when_its_process_died_is_opened() -> None:
    """O5: the crash between a step's start and the opening of its child loses nothing."""
    world = World(family())
    world.handle(world.settled("a", m.Success(b"")), death="after commit")
    world.handle()
    assert set(world.bodies) == {"child/c1"}


def test_s2_a_child_whose_inputs_cannot_be_made_never_started() -> None:
    """S2: its parent rolls back, and there is nothing of it to take back."""
    world = World(plan_for(step("a"), composed("child", INNER, "a")))
    world.handle(world.settled("a", m.Success(b"")), death="after commit")
    refused = m.Settled(0.0, "child", 1, 0, m.Failure(error_of("child", 0), started=False))
    world.state.children.clear()
    world.handle(refused)
    world.hand_back()
    assert handlers(world) == ["undone a"]
    assert world.state.status == "failed"


def test_max_recoveries_count_the_bodies_of_children() -> None:
    """Architecture 5.7: a child's body that kills its process parks the run, named with its way."""
    world = World(family(), max_recoveries=1)
    world.succeed("a")
    for _ in range(2):
        world.die()
        world.handle()
    assert world.state.status == "stuck"
    assert "child/c1" in (world.state.stuck or "")


def test_undo_of_a_stuck_run_reaches_its_child() -> None:
    """A stuck run has nothing running: its child's body in flight has been cut off, and is compensated."""
    world = World(family(), max_recoveries=0)
    world.succeed("a", "child/c1")
    world.die()
    world.handle()
    assert world.state.stuck is not None
    world.ask("undo")
    world.hand_back(3)
    assert handlers(world) == ["child: compensated c2", "child: undone c1", "undone a"]
    assert world.state.status == "cancelled"


def test_a_childs_timeout_fails_it() -> None:
    """S12: a child's own timeout is a failure of the parent's step."""
    child = plan_for("c1", timeout=5)
    world = World(plan_for(composed("child", child)))
    world.tick(5)
    world.end_cut("child/c1")
    world.hand_back()
    assert world.state.status == "failed"
    error = world.state.steps["child"].error
    assert error is not None
    assert (error.type, error.step) == ("TimeoutError", "child")


def test_o4_a_report_of_an_earlier_generation_settles_nothing_in_a_child() -> None:
    """O4: after a retry the child's steps run anew; what was reported before it comes too late."""
    world = World(family())
    world.succeed("a")
    late = world.settled("child/c1", m.Success(b""))
    world.fail("child/c1")
    undone = world.done()
    world.hand_back(2)
    world.ask("retry")
    world.succeed("a")
    assert world.handle(late) == []
    world.fail("child/c1")
    assert world.handle(undone) == []
    assert world.state.children["child"].status == "rolling_back"
