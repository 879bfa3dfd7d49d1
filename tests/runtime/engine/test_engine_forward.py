"""Steps going forward: starts, retries, failures, halts (rollback.md S1-S3, S6, S7)."""

from rewound.runtime.engine import messages as m
from rewound.runtime.engine import next_alarm
from rewound.runtime.engine import records as r
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.world import World, error_of

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


def test_retries_come_before_the_failure() -> None:
    """Rule S1: the last attempt fails the step, and only then is it compensated."""
    world = World(plan_for(step("a", attempts=2)))
    world.fail("a", retryable=True)
    world.tick(10)
    world.fail("a", retryable=True)
    world.hand_back()
    assert world.story(2) == [
        "retrying a at 10",
        "started a 2",
        "failed a",
        "rollbackopened",
        "compensated a",
        "ended failed",
    ]


def test_a_retry_does_not_begin_before_it_is_due() -> None:
    """Rule S1: a step waits out the delay of its `Retry`."""
    world = World(plan_for(step("a", attempts=2)))
    world.fail("a", retryable=True)
    assert world.tick(9.9) == []


def test_retries_that_are_due_together_begin_together() -> None:
    """Rule S1: one alarm serves all that are due."""
    world = World(plan_for(step("a", attempts=2), step("b", attempts=2)))
    world.fail("a", retryable=True)
    world.fail("b", retryable=True)
    world.tick(10)
    assert set(world.bodies) == {"a", "b"}


def test_a_retry_that_waits_for_a_slot_begins_once() -> None:
    """Rule S1: two alarms do not make two attempts."""
    world = World(plan_for(step("a", attempts=3), "b"))
    world.fail("a", retryable=True)
    world.slots = 1
    world.tick(10)
    world.tick(11)
    world.slots = 3
    world.handle()
    world.handle()
    assert world.story(-2) == ["retrying a at 10", "started a 2"]


def test_an_exception_that_is_not_retryable_is_final() -> None:
    """Rule S1: attempts that are left do not matter to an exception that is not worth one."""
    world = World(plan_for(step("a", attempts=2)))
    assert "failed a" in (world.fail("a") and world.story())


def test_a_step_that_never_began_is_not_compensated() -> None:
    """Rule S2: an input that cannot be resolved fails the step, and there is nothing to clean up."""
    world = World(plan_for("a"))
    world.fail("a", started=False)
    assert world.story(2) == ["failed a", "rollbackopened", "ended failed"]


def test_a_step_whose_second_attempt_never_began_is_compensated() -> None:
    """Rule S2: one attempt that began is enough."""
    world = World(plan_for(step("a", attempts=2)))
    world.fail("a", retryable=True)
    world.tick(10)
    world.fail("a", started=False)
    assert world.handler is not None


def test_a_step_of_which_no_attempt_began_is_not_compensated() -> None:
    """Rule S2: two attempts that never began are still none."""
    world = World(plan_for(step("a", attempts=2)))
    world.fail("a", retryable=True, started=False)
    world.tick(10)
    world.fail("a", started=False)
    assert world.story(-2) == ["rollbackopened", "ended failed"]


def test_a_step_that_never_began_and_loses_its_retry_is_not_compensated() -> None:
    """Rule S2: the failure of a sibling makes its failure final, not begun."""
    world = World(plan_for(step("a", attempts=2), step("b", compensate=0)))
    world.fail("a", retryable=True, started=False)
    world.fail("b")
    assert world.story(-4) == ["failed b", "failed a", "rollbackopened", "ended failed"]
    given_up = world.records[-3]
    assert isinstance(given_up, r.Failed)
    assert not given_up.started


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


def test_a_failing_sibling_makes_no_further_attempt() -> None:
    """Rule S3: once the run fails, a failure in flight is final whatever its `Retry` says."""
    world = World(plan_for("a", step("b", attempts=3)))
    world.fail("a")
    world.fail("b", retryable=True)
    assert world.story(-2) == ["failed b", "rollbackopened"]


def test_a_sibling_that_waits_for_a_retry_has_failed() -> None:
    """Rule S3: what only waits for another attempt is given up, with its last error."""
    world = World(plan_for("a", step("b", attempts=3)))
    world.fail("b", retryable=True)
    world.fail("a")
    assert world.story(-3) == ["failed a", "failed b", "rollbackopened"]
    assert world.state.steps["b"].error == error_of("b")


def test_retries_are_given_up_once_in_the_order_of_the_plan() -> None:
    """Rule S3: a second failure does not repeat it, and no alarm is left."""
    world = World(plan_for("a", step("c", attempts=2), step("b", attempts=2), "d"))
    world.fail("b", retryable=True)
    world.fail("c", retryable=True)
    world.fail("a")
    world.fail("d")
    assert world.story(-5) == ["failed a", "failed c", "failed b", "failed d", "rollbackopened"]
    assert next_alarm(world.plan, world.state) is None


def test_a_retry_that_is_due_and_has_no_slot_is_given_up_too() -> None:
    """Rule S3: it has not started, so it does not start; and it is not ready any more."""
    world = World(plan_for("a", step("b", attempts=2)), slots=2)
    world.fail("b", retryable=True)
    world.slots = 1
    world.tick(10)
    world.fail("a")
    assert world.story(-3) == ["failed a", "failed b", "rollbackopened"]
    assert world.state.ready == []


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


def test_a_halt_undoes_nothing_and_lets_siblings_settle() -> None:
    """Rule S6: siblings in flight settle, nothing new starts, the run ends halted."""
    world = World(plan_for("a", "b", step("c", "b")))
    world.halt("a")
    assert not world.bodies["b"].cut
    world.succeed("b")
    assert world.story(3) == ["halted a", "succeeded b", "ended halted"]


def test_nothing_new_starts_after_a_halt() -> None:
    """Rule S6: a step that becomes ready while siblings settle does not start."""
    world = World(plan_for("a", "b", step("c", "b"), "d"))
    world.halt("a")
    world.succeed("b")
    assert set(world.bodies) == {"d"}


def test_a_halt_leaves_siblings_their_attempts() -> None:
    """Rule S6: settling includes the retries of what has begun."""
    world = World(plan_for("a", step("b", attempts=2)))
    world.halt("a")
    world.fail("b", retryable=True)
    assert not world.state.terminal
    world.tick(10)
    world.succeed("b")
    assert world.story(-3) == ["started b 2", "succeeded b", "ended halted"]


def test_a_halt_leaves_attempts_also_to_a_step_that_never_began() -> None:
    """Rules S6 and O5: a sibling that waits for its second attempt gets it, or the run would never end."""
    world = World(plan_for("a", step("b", attempts=2)))
    world.fail("b", retryable=True, started=False)
    world.halt("a")
    world.tick(10)
    world.succeed("b")
    assert world.story(-2) == ["succeeded b", "ended halted"]


def test_a_halt_cuts_nobody() -> None:
    """Rule S6: `cancel_on_failure` is about failures."""
    world = World(plan_for("a", step("b", cancel_on_failure=True)))
    world.halt("a")
    assert not world.bodies["b"].cut


def test_a_failing_sibling_turns_a_halt_into_a_failure() -> None:
    """Rule S6: the halted step itself is neither compensated nor undone."""
    world = World(plan_for("a", "b", "c"))
    world.succeed("c")
    world.halt("a")
    world.fail("b")
    world.hand_back(2)
    assert world.story(-3) == ["compensated b", "undone c", "ended failed"]


def test_the_first_halt_gives_the_reason() -> None:
    """Rule S6: a second halt does not replace the first."""
    world = World(PAIR)
    world.halt("a", "first")
    world.halt("b", "second")
    assert world.state.halt == ("a", "first")


def test_a_halt_does_not_stop_a_failure() -> None:
    """Rule S6: a halt that comes after a failure changes nothing about it."""
    world = World(PAIR)
    world.fail("a")
    world.halt("b")
    world.hand_back()
    assert world.story(-3) == ["rollbackopened", "compensated a", "ended failed"]


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
