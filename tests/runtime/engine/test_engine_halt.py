"""Halts (docs/rules.md S6)."""

from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.world import World

PAIR = plan_for("a", "b")


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
