"""Undo, cancel and retry by hand (docs/rules.md section 3, V1, V2)."""

import pytest

from rewound.errors import RollbackIncomplete, RollbackInProgress, WrongStatus
from rewound.runtime.engine import advance, refusal
from rewound.runtime.engine import messages as m
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.statuses import STATUSES, world_in
from tests.runtime.engine.world import World

VERBS: tuple[m.VerbName, ...] = ("undo", "cancel", "retry")

ALLOWED: dict[str, tuple[str, ...]] = {
    "queued": ("cancel",),
    "running": ("undo", "cancel"),
    "paused": ("undo", "cancel"),
    "undo asked": (),
    "rolling_back": (),
    "completed": ("undo",),
    "halted": ("undo",),
    "cancelled": ("undo",),
    "cancelled, undone": (),
    "cancelled, undone with failures": ("undo",),
    "failed": ("retry",),
    "failed, with rollback failures": ("undo",),
    "stuck": ("retry", "undo", "cancel"),
    "stuck while queued": ("retry", "undo", "cancel"),
    "stuck while expiring": ("retry", "undo", "cancel"),
    "stuck while cancelling": ("retry", "undo", "cancel"),
    "stuck while undoing": ("retry",),
    "stuck while rolling back": ("retry",),
}


def test_every_status_is_in_the_table() -> None:
    """The table of the tests names the statuses that the tests can make."""
    assert set(ALLOWED) == set(STATUSES)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", STATUSES)
def test_the_status_decides_which_verb_is_allowed(status: str, verb: m.VerbName) -> None:
    """Section 3: each status allows the verbs of the table, and a refused verb changes nothing (O4)."""
    world = world_in(status)
    allowed = verb in ALLOWED[status]
    assert (refusal(world.state, verb) is None) is allowed
    records = advance(world.plan, world.state, m.Verb(world.now, verb))
    assert bool(records) is allowed


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", ["undo asked", "rolling_back"])
def test_a_run_that_rolls_back_says_so(status: str, verb: m.VerbName) -> None:
    """Section 8, scenario 11: `RollbackInProgress`, which is a `WrongStatus`."""
    assert isinstance(refusal(world_in(status).state, verb), RollbackInProgress)


def test_a_retry_with_rollback_failures_left_is_incomplete() -> None:
    """Rule V2: `RollbackIncomplete` says how many are left and what to do."""
    error = refusal(world_in("failed, with rollback failures").state, "retry")
    assert isinstance(error, RollbackIncomplete)
    assert "1 rollback failures" in str(error)


def test_a_retry_of_an_undone_run_is_not_a_matter_of_what_is_left() -> None:
    """Section 3: a cancelled run is never retried, so `undo` first would not help."""
    assert type(refusal(world_in("cancelled, undone with failures").state, "retry")) is WrongStatus


def test_a_refusal_names_the_status_and_what_it_allows() -> None:
    """Section 3: `WrongStatus` names the remedy."""
    error = refusal(world_in("failed").state, "cancel")
    assert type(error) is WrongStatus
    assert str(error) == "cancel was refused: the run is failed, which allows retry"


def test_a_refusal_says_when_nothing_is_allowed() -> None:
    """Section 3: a run that was undone allows nothing more."""
    assert "no verb" in str(refusal(world_in("cancelled, undone").state, "undo"))


def test_undo_cuts_bodies_compensates_them_and_undoes_the_rest() -> None:
    """Rule V1: the run ends cancelled."""
    world = World(plan_for("a", "b", "c"))
    world.succeed("a")
    world.ask("undo", "not wanted")
    assert (world.state.status, world.handler) == ("rolling_back", None)
    world.end_cut("b", "c")
    world.hand_back(3)
    assert world.story(5) == [
        "asked undo",
        "cut b",
        "cut c",
        "rollbackopened",
        "compensated b",
        "compensated c",
        "undone a",
        "ended cancelled",
    ]


def test_undo_compensates_a_step_that_waits_for_a_retry() -> None:
    """Rules V1 and S1: it has begun and will not be tried again."""
    world = World(plan_for(step("a", attempts=2)))
    world.fail("a", retryable=True)
    world.ask("undo")
    world.hand_back()
    assert world.story(3) == ["asked undo", "cut a", "rollbackopened", "compensated a", "ended cancelled"]


def test_undo_does_not_compensate_a_step_that_never_began() -> None:
    """Rules V1 and S2: it waited for another attempt, but none has begun."""
    world = World(plan_for(step("a", attempts=2)))
    world.fail("a", retryable=True, started=False)
    world.ask("undo")
    assert world.story(-3) == ["cut a", "rollbackopened", "ended cancelled"]


def test_a_body_that_fails_while_it_is_undone_is_compensated() -> None:
    """Rule V1: the run still ends cancelled, for an undo was its cause."""
    world = World(plan_for("a"))
    world.ask("undo")
    world.fail("a")
    world.hand_back()
    assert world.story(-4) == ["failed a", "rollbackopened", "compensated a", "ended cancelled"]


def test_undo_of_a_failing_run_ends_failed() -> None:
    """Section 3: the cause of the rollback is the failure that came first."""
    world = World(plan_for("a", "b"))
    world.fail("a")
    world.ask("undo")
    world.end_cut("b")
    world.hand_back(2)
    assert world.state.status == "failed"


def test_undo_of_a_halting_run_takes_it_back() -> None:
    """Rule V1: what was going to be halted is undone; the halted step is left as it is (S6)."""
    world = World(plan_for("a", "b", "c"))
    world.succeed("c")
    world.halt("a")
    world.ask("undo")
    world.end_cut("b")
    world.hand_back(2)
    assert world.story(-3) == ["compensated b", "undone c", "ended cancelled"]


@pytest.mark.parametrize("end", ["completed", "halted"])
def test_undo_of_an_ended_run_takes_it_back(end: str) -> None:
    """Section 8, scenario 3: `rolling_back` meanwhile, `cancelled` at the end."""
    world = World(plan_for("a", "b"))
    world.succeed("a")
    world.succeed("b") if end == "completed" else world.halt("b")
    assert world.state.status == end
    world.ask("undo")
    meanwhile = world.state.status
    world.hand_back(2 if end == "completed" else 1)
    assert (meanwhile, world.state.status) == ("rolling_back", "cancelled")


def test_cancel_takes_nothing_back() -> None:
    """Rule V1: bodies are cut off, and nothing is compensated or undone."""
    world = World(plan_for("a", "b", step("c", attempts=2)))
    world.succeed("a")
    world.fail("c", retryable=True)
    world.ask("cancel")
    assert world.state.status == "running"
    world.end_cut("b")
    assert world.story(6) == ["asked cancel", "cut c", "cut b", "ended cancelled"]


def test_undo_after_cancel_does_both() -> None:
    """Rule V1: a later undo compensates what was cut and undoes what completed."""
    world = World(plan_for("a", "b"))
    world.succeed("a")
    world.ask("cancel")
    world.end_cut("b")
    world.ask("undo")
    world.hand_back(2)
    assert world.story(-3) == ["compensated b", "undone a", "ended cancelled"]


def test_cancel_of_a_failing_run_keeps_the_failure_for_a_later_undo() -> None:
    """Rule V1: what had failed before the cancel is compensated by the undo."""
    world = World(plan_for("a", "b"))
    world.fail("a")
    world.ask("cancel")
    world.end_cut("b")
    assert world.state.status == "cancelled"
    world.ask("undo")
    world.hand_back(2)
    assert world.story(-3) == ["compensated a", "compensated b", "ended cancelled"]


def test_undo_while_a_cancel_is_under_way() -> None:
    """Rule V1: the run is still running, so the undo is accepted, and done."""
    world = World(plan_for("a"))
    world.ask("cancel")
    world.ask("undo")
    world.end_cut("a")
    world.hand_back()
    assert world.story(-2) == ["compensated a", "ended cancelled"]


def test_a_queued_run_is_cancelled_before_it_starts() -> None:
    """Section 3: nothing of it runs."""
    world = World(plan_for("a"), queued=True)
    world.ask("cancel")
    assert world.story(1) == ["asked cancel", "ended cancelled"]


def test_retry_runs_every_step_again_in_a_new_generation() -> None:
    """Rule V2: attempts count from 1 and nothing of the first generation is left."""
    world = World(plan_for("a", step("b", "a")))
    world.succeed("a")
    world.fail("b")
    world.hand_back(2)
    world.ask("retry")
    assert (world.state.generation, world.state.failures, world.state.cause) == (1, [], None)
    world.succeed("a", "b")
    assert world.story(-6) == [
        "retried",
        "started a 1",
        "succeeded a",
        "started b 1",
        "succeeded b",
        "ended completed",
    ]


def test_undo_repeats_only_the_undos_that_failed() -> None:
    """Rule V2: after it the run has no rollback failure left, is failed as before, and allows retry."""
    world = World(plan_for("a", "b", step("c", "a", "b")))
    world.succeed("a", "b")
    world.fail("c")
    world.hand_back()
    world.fail_handler()
    world.hand_back()
    world.ask("undo")
    world.hand_back()
    assert world.story(-4) == ["asked undo", "rollbackopened", "undone b", "ended failed"]
    assert refusal(world.state, "retry") is None


def test_an_undo_that_fails_again_can_be_repeated_again() -> None:
    """Rule V2: each failure is listed once, however often it was tried."""
    world = World(plan_for("a"))
    world.succeed("a")
    world.ask("undo")
    world.fail_handler()
    world.ask("undo")
    world.fail_handler()
    assert [failure.step for failure in world.state.rollback_failures] == ["a"]
    assert refusal(world.state, "undo") is None


def test_a_retried_run_can_fail_and_be_rolled_back_again() -> None:
    """Rule V2: undos of the second generation run although those of the first have."""
    world = World(plan_for("a", step("b", "a")))
    for _ in range(2):
        world.succeed("a")
        world.fail("b")
        world.hand_back(2)
        assert world.story(-3) == ["compensated b", "undone a", "ended failed"]
        world.ask("retry")
