"""A run's own timeout (docs/rules.md S12)."""

import pytest

from rewound.runtime.engine import first_failure, next_alarm, outcome_of
from rewound.runtime.outcomes import Failed
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.world import World


def test_a_run_that_takes_too_long_fails() -> None:
    """Rule S12: bodies in flight are cut off and compensated, the rest is undone."""
    world = World(plan_for("a", "b", timeout=5))
    world.succeed("a")
    world.tick(5)
    world.end_cut("b")
    world.hand_back(2)
    assert world.story(-6) == [
        "expired",
        "cut b",
        "rollbackopened",
        "compensated b",
        "undone a",
        "ended failed",
    ]


def test_the_timeout_is_the_failure() -> None:
    """Rule S12: the outcome names it, before the failures of bodies that it cut off."""
    world = World(plan_for(step("a", compensate=0), step("b", compensate=0), timeout=2.5))
    world.tick(2.5)
    world.end_cut("a")
    world.fail("b")
    outcome = outcome_of(world.plan, world.state, value=bytes, inputs={})
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.step) == ("TimeoutError", "")
    assert outcome.message == "the run took longer than its timeout of 2.5 s"
    assert [error.step for error in outcome.others] == ["b"]


def test_nothing_happens_before_the_timeout() -> None:
    """Rule S12: the alarm is set for the moment of the timeout, and an early tick does nothing."""
    world = World(plan_for("a", timeout=5))
    assert next_alarm(world.plan, world.state) == 5
    assert world.tick(4.9) == []


def test_the_nearer_alarm_comes_first() -> None:
    """A retry that is due before the timeout sets the alarm."""
    world = World(plan_for(step("a", attempts=2), timeout=15))
    world.fail("a", retryable=True)
    assert next_alarm(world.plan, world.state) == 10
    world.tick(10)
    assert next_alarm(world.plan, world.state) == 15


def test_a_retry_that_waits_is_given_up_by_the_timeout() -> None:
    """Rule S12: a run that is out of time makes no further attempt."""
    world = World(plan_for(step("a", attempts=2), timeout=5))
    world.fail("a", retryable=True)
    world.tick(5)
    assert world.story(-3) == ["expired", "failed a", "rollbackopened"]


def test_the_timeout_is_a_total_across_restarts() -> None:
    """Rule S12, lesson 12: a crash does not start it again."""
    world = World(plan_for("a", timeout=5))
    world.now = 5
    world.die()
    world.handle()
    assert "expired" in world.story()


def test_a_body_that_was_lost_with_its_process_is_cut_if_the_time_is_over() -> None:
    """Rule S12: a takeover that finds the run out of time does not let the body run to its end."""
    world = World(plan_for("a", timeout=5))
    world.die()
    world.now = 5
    world.handle()
    world.end_cut("a")
    world.hand_back()
    assert world.story(-3) == ["rollbackopened", "compensated a", "ended failed"]


def test_a_timeout_cuts_the_siblings_of_a_failure() -> None:
    """Rule S12: siblings that settle too slowly are cut off; the failure that came first stays first."""
    world = World(plan_for("a", "b", timeout=5))
    world.fail("a")
    world.tick(5)
    world.end_cut("b")
    failure = first_failure(world.state)
    assert failure is not None
    assert failure.step == "a"


def test_a_timeout_turns_a_halt_into_a_failure() -> None:
    """Rules S6 and S12: a sibling that does not settle in time fails the run."""
    world = World(plan_for("a", "b", timeout=5))
    world.halt("a")
    world.tick(5)
    world.end_cut("b")
    world.hand_back()
    assert world.state.status == "failed"


@pytest.mark.parametrize("queued", [True, False])
def test_a_run_that_never_started_expires_too(*, queued: bool) -> None:
    """Rule S12: waiting for a slot is part of the total."""
    world = World(plan_for("a", timeout=5), slots=0, queued=queued)
    world.tick(5)
    assert world.story(1) == ["expired", "rollbackopened", "ended failed"]


def test_a_timeout_expires_once() -> None:
    """Rule O4: a second tick adds nothing."""
    world = World(plan_for("a", timeout=5))
    world.tick(5)
    assert world.tick(6) == []
    assert next_alarm(world.plan, world.state) is None


def test_a_timeout_never_stops_a_rollback() -> None:
    """Rule S12: handlers are not cut off."""
    world = World(plan_for("a", timeout=5))
    world.fail("a")
    assert world.tick(5) == []
    assert next_alarm(world.plan, world.state) is None


@pytest.mark.parametrize("verb", ["undo", "cancel"])
def test_a_timeout_does_not_touch_a_run_that_is_stopped_by_hand(verb: str) -> None:
    """Rule S12: an undo is a rollback already, and a cancel stays a cancel."""
    world = World(plan_for("a", timeout=5))
    world.ask("undo" if verb == "undo" else "cancel")
    assert world.tick(5) == []
    assert next_alarm(world.plan, world.state) is None


def test_an_ended_run_has_no_alarm() -> None:
    """Rule O4: a tick after the end does nothing."""
    world = World(plan_for("a", timeout=5))
    world.succeed("a")
    assert next_alarm(world.plan, world.state) is None
    assert world.tick(5) == []


def test_a_retried_run_has_its_whole_time_again() -> None:
    """Rules S12 and V2: the timeout of a generation counts from its beginning."""
    world = World(plan_for("a", timeout=5))
    world.fail("a")
    world.hand_back()
    world.now = 100
    world.ask("retry")
    assert next_alarm(world.plan, world.state) == 105
