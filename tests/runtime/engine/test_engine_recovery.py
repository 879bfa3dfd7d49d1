"""Crashes and takeovers: what runs again, what is cut, when a run is parked (docs/architecture.md 5)."""

import pytest

from rewound.runtime.engine import advance, fold, next_alarm
from rewound.runtime.engine import messages as m
from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.statuses import world_in
from tests.runtime.engine.story import told
from tests.runtime.engine.world import World


def test_what_was_in_flight_runs_again() -> None:
    """Section 5.4: a crash re-runs the bodies that were in flight, as the same attempt; nothing else."""
    world = World(plan_for("a", "b"))
    world.succeed("a")
    world.die()
    world.handle()
    assert world.begun == {(0, "a", 1): 1, (0, "b", 1): 2}
    assert world.story(-1) == ["recovered"]


def test_a_second_attempt_in_flight_runs_again_as_the_second() -> None:
    """Section 5.4: the attempts that are recorded count."""
    world = World(plan_for(step("a", attempts=2)))
    world.fail("a", retryable=True)
    world.tick(10)
    world.die()
    world.handle()
    assert world.begun == {(0, "a", 1): 1, (0, "a", 2): 2}


def test_a_step_that_was_listed_and_never_begun_runs() -> None:
    """Section 5.3: "listed and not settled" after a crash means started."""
    world = World(plan_for("a", step("b", "a")))
    world.handle(world.settled("a", m.Success(b"")), death="after commit")
    world.handle()
    assert world.begun == {(0, "a", 1): 1, (0, "b", 1): 1}


def test_a_step_that_was_in_flight_at_a_crash_counts_as_begun() -> None:
    """Rule S2: its body may have begun, so it is compensated even if it cannot begin again."""
    world = World(plan_for("a"))
    world.die()
    world.handle()
    world.fail("a", started=False)
    assert world.handler is not None


def test_a_step_that_was_in_flight_at_a_release_counts_as_begun() -> None:
    """Rule S2: the same after a shutdown, and the record says so to whoever reads it."""
    world = World(plan_for("a"))
    world.die(crashed=False)
    world.handle()
    world.fail("a", started=False)
    world.die()
    world.handle()
    assert world.handler is not None


def test_a_step_that_was_in_flight_when_its_run_was_parked_counts_as_begun() -> None:
    """Rule S2: the same once a person lets the run go on."""
    world = World(plan_for("a"))
    world.park()
    world.ask("retry")
    world.fail("a", started=False)
    assert world.handler is not None


def test_in_flight_siblings_of_a_failing_run_run_again() -> None:
    """Rule S3: after a crash they run until they settle; those that a failure cancels are cut."""
    world = World(plan_for("a", "b", step("c", cancel_on_failure=True)))
    world.fail("a")
    world.die()
    world.handle()
    assert set(world.bodies) == {"b"}
    assert world.story(-2) == ["recovered", "cut c"]


@pytest.mark.parametrize("verb", ["undo", "cancel"])
def test_bodies_that_were_to_be_cut_were_cut_by_the_crash(verb: str) -> None:
    """Rule V1: they do not run again."""
    world = World(plan_for(step("a", compensate=0)))
    world.ask("undo" if verb == "undo" else "cancel")
    world.die()
    world.handle()
    assert world.begun.total() == 1
    assert world.state.status == "cancelled"


@pytest.mark.parametrize("verb", ["undo", "cancel"])
def test_a_verb_that_finds_the_run_without_owner_cuts_its_bodies(verb: str) -> None:
    """Rules V1 and O5: what was in flight at the crash is not left to run to its end."""
    world = World(plan_for(step("a", compensate=0)))
    world.die()
    world.ask("undo" if verb == "undo" else "cancel")
    world.end_cut("a")
    assert world.state.status == "cancelled"


def test_a_run_in_flight_at_each_of_too_many_crashes_is_parked() -> None:
    """Section 5.7: after `max_recoveries` in a row the next crash parks the run."""
    world = World(plan_for("b", "a"), max_recoveries=2)
    for _ in range(2):
        world.die()
        world.handle()
    assert world.state.status == "running"
    world.die()
    world.handle()
    assert (world.state.status, world.bodies) == ("stuck", {})
    assert world.state.stuck == (
        "its process died 3 times in a row while a, b was in flight; mend that, then retry the run"
    )


def test_a_handler_that_kills_its_process_is_parked_too() -> None:
    """Section 5.7: a handler is a body as well, in its first attempt and in any other."""
    for attempts in (1, 2):
        world = World(plan_for(step("a", compensate=2)), max_recoveries=0)
        world.fail("a")
        if attempts == 2:
            world.fail_handler(retryable=True)
            world.tick(10)
        world.die()
        world.handle()
        assert world.state.stuck is not None
        assert "while the compensate of a was in flight" in world.state.stuck


def test_a_crash_while_a_handler_waits_for_its_retry_does_not_count() -> None:
    """Section 5.7: no body was in flight."""
    world = World(plan_for(step("a", compensate=2)), max_recoveries=0)
    world.fail("a")
    world.fail_handler(retryable=True)
    world.die()
    world.handle()
    assert world.state.status == "rolling_back"


def test_a_crash_between_bodies_does_not_count() -> None:
    """Section 5.7: no body was in flight."""
    world = World(plan_for(step("a", attempts=2)), max_recoveries=0)
    world.fail("a", retryable=True)
    world.die()
    assert world.handle() == []


def test_a_graceful_release_does_not_count() -> None:
    """Section 5.7: a deploy is not a crash."""
    world = World(plan_for("a"), max_recoveries=0)
    world.die(crashed=False)
    assert world.handle() == []
    assert set(world.bodies) == {"a"}


@pytest.mark.parametrize("settles", ["step", "attempt", "handler", "handler attempt"])
def test_anything_that_settles_ends_the_row(settles: str) -> None:
    """Section 5.7: only crashes with nothing settled in between are counted."""
    world = World(plan_for("a", step("b", attempts=2), step("c", undo=2)), max_recoveries=1)
    if settles.startswith("handler"):
        world.succeed("a", "b", "c")
        world.ask("undo")
    world.die()
    world.handle()
    match settles:
        case "step":
            world.succeed("a")
        case "attempt":
            world.fail("b", retryable=True)
        case "handler":
            world.hand_back()
        case _:
            world.fail_handler(retryable=True)
            world.now = 10
    world.die()
    world.handle()
    assert not world.state.stuck


def test_a_run_whose_bodies_are_all_to_be_cut_is_not_parked() -> None:
    """Section 5.7: nothing of it would run again, so a cancel gets through."""
    world = World(plan_for("a"), max_recoveries=0)
    world.ask("cancel")
    world.die()
    world.handle()
    assert world.story(-3) == ["recovered", "cut a", "ended cancelled"]


def test_retry_of_a_parked_run_goes_on_where_it_was() -> None:
    """Section 3: `stuck` goes on with the bodies that were in flight, and its crashes are forgotten."""
    world = World(plan_for("a"), max_recoveries=0)
    world.die()
    world.handle()
    world.ask("retry")
    assert (world.story(-1), world.state.recoveries) == (["resumed"], 0)
    world.succeed("a")
    assert world.state.status == "completed"


@pytest.mark.parametrize("status", ["queued", "running", "undo asked", "rolling_back"])
def test_a_parked_run_takes_up_the_status_it_had(status: str) -> None:
    """Section 3: `retry` goes on where the run was interrupted."""
    world = world_in(status)
    before = world.state.status
    world.park()
    world.park("parked twice")
    world.state.stuck = None
    records = advance(world.plan, world.state, m.Verb(0.0, "retry"))
    assert told(records[:1]) == ["resumed"]
    assert fold(world.plan, [*world.records, records[0]]).status == before


def test_retry_of_a_parked_undo_cuts_what_was_in_flight() -> None:
    """Rule V1: the bodies ended with their process; they are compensated."""
    world = World(plan_for("a"))
    world.ask("undo")
    world.park()
    world.ask("retry")
    world.hand_back()
    assert world.story(-5) == ["resumed", "cut a", "rollbackopened", "compensated a", "ended cancelled"]


def test_undo_of_a_parked_run_cuts_what_was_in_flight() -> None:
    """Rule V1: bodies ended with their process, what waited for a retry is given up."""
    world = World(plan_for("a", "b", step("c", attempts=2)))
    world.succeed("a")
    world.fail("c", retryable=True)
    world.park()
    world.ask("undo")
    world.hand_back(3)
    assert world.story(-7) == [
        "cut b",
        "cut c",
        "rollbackopened",
        "compensated b",
        "compensated c",
        "undone a",
        "ended cancelled",
    ]


def test_cancel_of_a_parked_run_ends_it() -> None:
    """Section 3: nothing of it is running."""
    world = World(plan_for("a"))
    world.park()
    world.ask("cancel")
    assert world.story(-3) == ["asked cancel", "cut a", "ended cancelled"]
    assert world.state.stuck is None


def test_a_stuck_run_does_nothing() -> None:
    """Section 3: it needs a person, whatever alarms ring."""
    world = World(plan_for(step("a", attempts=2), "b", timeout=5))
    world.fail("a", retryable=True)
    world.park()
    assert world.tick(20) == []
    assert (world.bodies, next_alarm(world.plan, world.state)) == ({}, None)
