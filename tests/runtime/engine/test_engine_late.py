"""Messages that come twice, late, or for something else (docs/rules.md O4)."""

import pytest

from rewound.runtime.engine import messages as m
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.statuses import STATUSES, world_in
from tests.runtime.engine.world import World, error_of

RESULTS: list[m.Result] = [
    m.Success(b""),
    m.Failure(error_of("a")),
    m.Halting("enough"),
    m.Interrupted(),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_second_copy_of_a_settle_signal_adds_nothing(result: m.Result) -> None:
    """Rule O4: a step that has settled stays settled."""
    world = World(plan_for("a", step("b", "a")))
    signal = world.settled("a", result)
    world.succeed("a")
    assert world.handle(signal) == []


def test_a_signal_of_an_earlier_attempt_adds_nothing() -> None:
    """Rule O4: the second attempt settles for itself."""
    world = World(plan_for(step("a", attempts=3)))
    signal = world.settled("a", m.Failure(error_of("a"), retryable=True))
    world.handle(signal)
    assert world.handle(signal) == []
    world.tick(10)
    assert world.handle(signal) == []


def test_a_signal_of_an_earlier_generation_adds_nothing() -> None:
    """Rule O4: a retried run does not take the word of the run that was rolled back."""
    world = World(plan_for("a"))
    signal = world.settled("a", m.Success(b""))
    world.fail("a")
    world.hand_back()
    world.ask("retry")
    assert world.handle(signal) == []


def test_a_signal_of_an_unknown_step_adds_nothing() -> None:
    """Rule O4: a step of another version of the plan is nobody's."""
    world = World(plan_for("a"))
    assert world.handle(m.Settled(0.0, "z", 1, 0, m.Success(b""))) == []


def test_a_signal_for_a_stuck_run_adds_nothing() -> None:
    """Section 3: a stuck run changes by hand only."""
    world = World(plan_for("a"))
    signal = world.settled("a", m.Success(b""))
    world.park()
    assert world.handle(signal) == []


def test_a_second_copy_of_a_handlers_signal_adds_nothing() -> None:
    """Rule O4: it does not settle the handler that comes next either."""
    world = World(plan_for("a", "b"))
    world.succeed("a", "b")
    world.ask("undo")
    signal = world.done()
    world.handle(signal)
    assert world.handle(signal) == []


def test_a_handlers_earlier_attempt_adds_nothing() -> None:
    """Rule O4: the second attempt settles for itself."""
    world = World(plan_for(step("a", compensate=3)))
    world.fail("a")
    signal = world.done(m.Failure(error_of("a"), retryable=True))
    world.handle(signal)
    assert world.handle(signal) == []


def test_a_handlers_signal_of_an_earlier_rollback_adds_nothing() -> None:
    """Rule O4: the undo of the second generation runs, whatever became of that of the first."""
    world = World(plan_for("a"))
    world.fail("a")
    signal = world.done()
    world.hand_back()
    world.ask("retry")
    assert world.handle(signal) == []
    world.fail("a")
    assert world.handle(signal) == []
    assert world.handler is not None


def test_a_handlers_signal_for_a_stuck_run_adds_nothing() -> None:
    """Section 3: a stuck run changes by hand only."""
    world = World(plan_for("a"))
    world.fail("a")
    signal = world.done()
    world.park()
    assert world.handle(signal) == []


def test_a_second_cancel_adds_nothing() -> None:
    """Rule O4: it is accepted, for it asks for what is happening already."""
    world = World(plan_for("a"))
    world.ask("cancel", "first")
    assert world.ask("cancel", "second") == []
    assert world.state.reason == "first"


@pytest.mark.parametrize("status", STATUSES)
def test_a_second_adoption_adds_nothing(status: str) -> None:
    """Rule O4: adopting a run that was released tells nothing new about it."""
    world = world_in(status)
    world.state.recoveries = 0
    world.handle(m.Adopted(world.now, crashed=False, max_recoveries=5))
    assert world.handle(m.Adopted(world.now, crashed=False, max_recoveries=5)) == []


@pytest.mark.parametrize("status", [status for status in STATUSES if not status.startswith("stuck")])
def test_a_run_that_no_node_can_go_on_with_is_parked_unless_it_has_ended(status: str) -> None:
    """Architecture 5.8: parked once, with the reason; an ended run stays as it ended."""
    world = world_in(status)
    ended = world.state.terminal
    world.handle(m.Refused(world.now, "unknown reactor"))
    assert (world.state.status == "stuck") is not ended
    assert world.state.stuck == (None if ended else "unknown reactor")
    assert world.handle(m.Refused(world.now, "again")) == []
