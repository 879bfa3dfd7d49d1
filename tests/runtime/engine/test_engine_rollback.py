"""The way back: order, failures of handlers, their retries (docs/rules.md S4, S5, S9)."""

import pytest

from rewound.runtime.engine import fold, next_alarm
from rewound.runtime.engine import messages as m
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.world import World

CHAIN = plan_for("a", step("b", "a"), step("c", "b"))


def failed_chain() -> World:
    """Return a run whose third step failed and whose rollback begins."""
    world = World(CHAIN)
    world.succeed("a", "b")
    world.fail("c")
    return world


def test_two_branches_fail_at_once() -> None:
    """Rule S4: compensates in the order of recorded failures, then undos in reverse completion order."""
    world = World(plan_for("a", "b", "c", "d"))
    world.succeed("d", "b")
    world.fail("c")
    world.fail("a")
    world.hand_back(4)
    assert world.story(-5) == [
        "compensated c",
        "compensated a",
        "undone b",
        "undone d",
        "ended failed",
    ]


def test_steps_without_handlers_are_passed_over() -> None:
    """Rule S4: only what a step declares is run."""
    world = World(plan_for("a", step("b", "a", undo=0), step("c", "b", compensate=0)))
    world.succeed("a", "b")
    world.fail("c")
    world.hand_back()
    assert world.story(-4) == ["failed c", "rollbackopened", "undone a", "ended failed"]


def test_handlers_run_one_at_a_time() -> None:
    """Rule S4: the next begins when the one before has returned."""
    world = failed_chain()
    assert world.handle() == []
    assert sum(world.begun[key] for key in world.begun if key[1] in ("undo", "compensate")) == 1


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failing_handler_does_not_stop_the_others(failing: int) -> None:
    """Rule S5: each is tried, the failure is listed, the run ends failed."""
    world = failed_chain()
    for turn in range(3):
        world.fail_handler() if turn == failing else world.hand_back()
    entries = [("c", "compensate"), ("b", "undo"), ("a", "undo")]
    assert world.state.status == "failed"
    assert [(f.step, f.kind) for f in world.state.rollback_failures] == [entries[failing]]


def test_a_handler_has_its_own_retry() -> None:
    """Rule S5: its attempts are counted by its own `Retry`; the last failure is the rollback failure."""
    world = World(plan_for(step("a", compensate=2)))
    world.fail("a")
    world.fail_handler(retryable=True)
    assert world.handler is None
    world.tick(10)
    world.fail_handler(retryable=True)
    assert world.story(3) == [
        "rollbackopened",
        "compensate a again at 10",
        "compensate a failed",
        "ended failed",
    ]


def test_a_handlers_exception_that_is_not_retryable_is_final() -> None:
    """Rule S5: attempts that are left do not matter to an exception that is not worth one."""
    world = World(plan_for(step("a", compensate=2)))
    world.fail("a")
    world.fail_handler(retryable=False)
    assert world.story(-2) == ["compensate a failed", "ended failed"]


def test_a_handler_waits_out_its_delay_and_the_alarm_says_how_long() -> None:
    """Rule S5: nothing begins before the retry is due."""
    world = World(plan_for(step("a", compensate=2)))
    world.fail("a")
    world.fail_handler(retryable=True)
    assert next_alarm(world.plan, world.state) == 10
    world.tick(9)
    assert world.handler is None


def test_a_handlers_alarm_is_over_once_it_has_rung() -> None:
    """A run whose handler makes its second attempt waits for that, not for an alarm in the past."""
    world = World(plan_for(step("a", compensate=2)))
    world.fail("a")
    world.fail_handler(retryable=True)
    world.tick(10)
    assert world.handler is not None
    assert next_alarm(world.plan, world.state) is None


def test_the_next_handler_counts_its_attempts_anew() -> None:
    """Rule S5: attempts belong to one handler."""
    world = World(plan_for("a", step("b", "a", compensate=2)))
    world.succeed("a")
    world.fail("b")
    world.fail_handler(retryable=True)
    world.tick(10)
    world.hand_back()
    assert world.handler is not None
    assert (world.handler.step, world.handler.attempt) == ("a", 1)


def test_the_next_handler_does_not_wait_for_the_retry_of_the_one_before() -> None:
    """Rule S5: a wait belongs to one handler, and no alarm of it is left."""
    world = World(plan_for("a", step("b", "a", compensate=2)))
    world.succeed("a")
    world.fail("b")
    world.fail_handler(retryable=True)
    world.now = 10
    world.handle()
    world.hand_back()
    assert next_alarm(world.plan, world.state) is None


def test_rollback_resumes_behind_the_last_record() -> None:
    """Rule S9: after a crash only the undo that was cut off runs again."""
    world = failed_chain()
    world.hand_back()
    world.handle(world.done(), death="before commit")
    world.handle()
    world.hand_back(2)
    undos = [(key[2], count) for key, count in world.begun.items() if key[1] in ("undo", "compensate")]
    assert undos == [("c", 1), ("b", 2), ("a", 1)]


def test_a_handler_that_failed_waits_for_its_delay_also_after_a_crash() -> None:
    """Rule S9, lesson 12: a recorded attempt counts, and a wait does not start from zero."""
    world = World(plan_for(step("a", compensate=2)))
    world.fail("a")
    world.fail_handler(retryable=True)
    world.die()
    world.handle()
    assert world.handler is None
    world.tick(10)
    assert world.handler is not None
    assert world.handler.attempt == 2


def test_a_run_without_anything_to_take_back_ends_at_once() -> None:
    """Rule O5: an empty rollback ends with the message that opened it."""
    world = World(plan_for(step("a", compensate=0)))
    world.fail("a")
    assert world.state.status == "failed"


def test_rollback_ignores_a_handler_that_is_not_its_turn() -> None:
    """Rule O4: only the first of the queue can settle."""
    world = failed_chain()
    assert world.handle(m.HandlerDone(0.0, "a", "undo", 1, None, 1)) == []


def test_a_journal_is_read_though_a_handler_is_gone_from_the_plan() -> None:
    """Architecture 5.8: a newer version may have dropped an undo that an older one had carried out."""
    world = World(CHAIN)
    world.succeed("a", "b")
    world.ask("undo")
    world.end_cut("c")
    world.hand_back(2)
    newer = plan_for("a", step("b", "a", undo=0), step("c", "b"))
    assert fold(newer, world.records).queue == [("undo", "a")]
