"""How an ended run is reported."""

from typing import Any

import pytest

from rewound.runtime.engine import first_failure, outcome_of
from rewound.runtime.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Halted,
    Outcome,
    RollbackFailure,
    StepError,
)
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.statuses import world_in
from tests.runtime.engine.world import World


def outcome(world: World) -> Outcome[Any]:
    """Return the outcome of an ended run."""
    assert world.state.terminal
    return outcome_of(world.plan, world.state, value=lambda: "value", inputs={"order": 17})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("completed", Completed("value")),
        ("halted", Halted("enough", "a")),
        ("cancelled", Cancelled("")),
        ("cancelled, undone", Cancelled("", undone=True)),
    ],
)
def test_each_end_has_its_outcome(status: str, expected: Outcome[Any]) -> None:
    """Completed with the value, halted with reason and step, cancelled with whether it was undone."""
    assert outcome(world_in(status)) == expected


def test_a_failure_names_the_first_step_that_failed_and_lists_the_others() -> None:
    """A failure carries the first error, the inputs, and the errors of siblings in their order."""
    world = World(plan_for(*(step(name, compensate=0) for name in "abc")))
    world.fail("c")
    world.fail("a")
    world.fail("b")
    failed = outcome(world)
    assert isinstance(failed, Failed)
    assert (failed.reactor, failed.step, failed.error, failed.message) == ("Test", "c", "Boom", "c broke")
    assert (failed.attempts, failed.inputs) == (1, {"order": 17})
    assert [error.step for error in failed.others] == ["a", "b"]


def test_a_step_that_was_cut_off_is_no_failure() -> None:
    """A sibling that only was in the way is compensated and not listed."""
    world = World(plan_for("a", step("b", attempts=2, cancel_on_failure=True)))
    world.fail("b", retryable=True)
    world.tick(10)
    world.fail("a")
    world.end_cut("b")
    world.hand_back(2)
    failed = outcome(world)
    assert isinstance(failed, Failed)
    assert (failed.step, failed.others) == ("a", [])


def test_rollback_failures_are_listed_in_the_order_of_their_records() -> None:
    """Rule S5: every undo and compensate that failed, with its error."""
    world = World(plan_for("a", step("b", "a")))
    world.succeed("a")
    world.fail("b")
    world.fail_handler()
    world.fail_handler()
    assert outcome(world).rollback_failures == [
        RollbackFailure("b", "compensate", "Boom", "b broke"),
        RollbackFailure("a", "undo", "Boom", "a broke"),
    ]


def test_the_failure_survives_an_undo_of_what_its_rollback_left() -> None:
    """Rule V2: the run is still failed for the same reason, with nothing left."""
    world = world_in("failed, with rollback failures")
    before = outcome(world)
    world.ask("undo")
    world.hand_back()
    after = outcome(world)
    assert isinstance(before, Failed)
    assert isinstance(after, Failed)
    assert (before.step, before.message) == (after.step, after.message)
    assert after.rollback_failures == []


def test_a_run_without_failure_has_no_first_failure() -> None:
    """`first_failure` is about failures only."""
    assert first_failure(world_in("completed").state) is None


def test_the_fields_of_invalid_inputs_are_kept() -> None:
    """A failure whose body never began carries its fields and no attempts (lesson 15)."""
    world = World(plan_for("a"))
    world.fail("a", started=False)
    world.state.steps["a"].error = StepError("InputError", "bad", "a", 0, fields={"a.b": "Expected int"})
    failed = outcome(world)
    assert isinstance(failed, Failed)
    assert (failed.attempts, failed.fields) == (0, {"a.b": "Expected int"})
