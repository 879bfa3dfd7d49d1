"""Steps going forward, and what stops them (docs/rules.md S2, S3, S7)."""

from rewound.runtime.engine import messages as m
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.world import World

PAIR = plan_for("a", "b")


def test_a_step_starts_when_all_it_needs_have_completed() -> None:
    """A step waits for each of its needs, and the run completes with its last step."""
    world = World(plan_for("a", "b", step("c", "a", "b")))
    world.succeed("a", "b", "c")
    assert world.story(1) == [
        "started a 1",
        "started b 1",
        "succeeded a",
        "succeeded b",
        "started c 1",
        "succeeded c",
        "ended completed",
    ]


def test_independent_steps_run_at_the_same_time() -> None:
    """Rule S3: steps that do not need each other start together."""
    assert set(World(plan_for("a", "b", step("c", "a"))).bodies) == {"a", "b"}


def test_ready_steps_wait_for_slots_in_the_order_they_became_ready() -> None:
    """With one slot the oldest ready step starts first."""
    world = World(plan_for("a", "b", step("c", "a")), slots=1)
    world.succeed("a", "b", "c")
    assert [told for told in world.story() if told.startswith("started")] == [
        "started a 1",
        "started b 1",
        "started c 1",
    ]


def test_a_queued_run_is_running_once_a_step_started() -> None:
    """Section 3: `queued` becomes `running`."""
    world = World(PAIR, queued=True)
    before = world.state.status
    world.handle()
    assert (before, world.state.status) == ("queued", "running")


def test_steps_that_waited_when_a_sibling_failed_do_not_start() -> None:
    """Rules S2 and S3: a step without a slot never starts after a failure, nor is it compensated."""
    world = World(PAIR, slots=1)
    world.fail("a")
    world.hand_back()
    assert world.story(1) == ["started a 1", "failed a", "rollbackopened", "compensated a", "ended failed"]


def test_nothing_new_starts_while_siblings_of_a_failure_settle() -> None:
    """Rule S3: not even where there is a slot."""
    world = World(plan_for("a", "b", "c"), slots=2)
    world.fail("a")
    assert set(world.bodies) == {"b"}


def test_siblings_in_flight_settle_before_the_rollback() -> None:
    """Rule S3: nothing is compensated while a body runs, and what succeeds meanwhile is undone."""
    world = World(plan_for("a", "b", step("c", "b")))
    world.fail("a")
    assert (world.handler, world.state.status) == (None, "running")
    world.succeed("b")
    world.hand_back(2)
    assert world.story(4) == [
        "succeeded b",
        "rollbackopened",
        "compensated a",
        "undone b",
        "ended failed",
    ]


def test_cancel_on_failure_cuts_a_sibling_and_compensates_it() -> None:
    """Rule S3: a sibling that declares it is cancelled, once its body has ended it is compensated."""
    world = World(plan_for("a", step("b", cancel_on_failure=True), "c"))
    world.fail("a")
    assert [name for name, body in world.bodies.items() if body.cut] == ["b"]
    world.end_cut("b")
    world.succeed("c")
    assert world.story(-3) == ["cut b", "succeeded c", "rollbackopened"]
    world.hand_back(3)
    assert world.story(-4) == ["compensated a", "compensated b", "undone c", "ended failed"]


def test_a_cut_sibling_may_still_succeed() -> None:
    """Rule S3: a body that returns in spite of being cut has succeeded, and is undone."""
    world = World(plan_for("a", step("b", cancel_on_failure=True)))
    world.fail("a")
    world.succeed("b")
    world.hand_back(2)
    assert world.story(-3) == ["compensated a", "undone b", "ended failed"]


def test_a_skipped_step_counts_as_completed_and_is_never_undone() -> None:
    """Rule S7: its value flows on; the rollback passes it over."""
    world = World(plan_for("a", step("b", "a")))
    world.handle(world.settled("a", m.Success(b"value", skipped=True)))
    assert world.state.steps["a"].value == b"value"
    world.fail("b")
    world.hand_back()
    assert world.story(2) == [
        "skipped a",
        "started b 1",
        "failed b",
        "rollbackopened",
        "compensated b",
        "ended failed",
    ]


def test_a_body_that_was_cut_for_no_reason_of_the_run_stays_in_flight() -> None:
    """A body cut because its node closes is run again elsewhere: that is no settling (O5)."""
    world = World(plan_for("a"))
    assert world.handle(world.settled("a", m.Interrupted())) == []
    assert world.state.in_flight == {"a"}
