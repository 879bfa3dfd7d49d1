"""Attempts of a step, and whether it has begun (docs/rules.md S1, S2)."""

from rewound.runtime.engine import next_alarm
from rewound.runtime.engine import records as r
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.world import World, error_of


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
    world.fail("a")
    assert world.story(-2) == ["failed a", "rollbackopened"]


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
