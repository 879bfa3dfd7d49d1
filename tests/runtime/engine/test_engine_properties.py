"""Random plans under random histories (docs/rules.md section 7: O2, O4, O5, and the rules of the referee)."""

import pytest
from hypothesis import HealthCheck, given, settings

from rewound.runtime.declare import Plan
from rewound.runtime.engine import outcome_of
from rewound.runtime.engine import records as r
from rewound.runtime.engine.changes import apply
from rewound.runtime.engine.state import RunState
from tests.runtime.engine.crash_free import without_crashes
from tests.runtime.engine.family import FamilyPlayer
from tests.runtime.engine.player import Player
from tests.runtime.engine.strategies import Move, Setting, families, moves, plans, settings_of_runs

few = settings(max_examples=200, deadline=None)
many = settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TRANSITIONS = {
    "queued": {"running", "rolling_back", "stuck"},
    "running": {"rolling_back", "completed", "halted", "cancelled", "stuck"},
    "rolling_back": {"failed", "cancelled", "stuck"},
    "completed": {"rolling_back"},
    "halted": {"rolling_back"},
    "cancelled": {"rolling_back"},
    "failed": {"running", "rolling_back"},
    "stuck": {"queued", "running", "rolling_back"},
}


def play(plan: Plan, setting: Setting, history: list[Move], kind: type[Player] = Player) -> None:
    """Play a history to its end, under the eyes of the referee, and look at what is left."""
    player = kind(plan, setting)
    for move in history:
        player.play(move)
    player.end()
    check_the_end(player)
    records = player.world.records
    check_transitions(plan, records)
    without_crashes(plan, records)


def check_the_end(player: Player) -> None:
    """Rules O4 and S5: an ended run takes no report, and lists every rollback failure once."""
    world = player.world
    for report in player.handled:
        assert world.handle(report) == []
    outcome = outcome_of(world.plan, world.state, value=bytes, inputs={})
    left = [(failure.kind, failure.step) for failure in outcome.rollback_failures]
    assert len(left) == len(set(left))
    assert set(left) == player.referee.left


def check_transitions(plan: Plan, records: list[r.Record]) -> None:
    """Section 3: the status changes along the table only."""
    state = RunState()
    for record in records:
        before = state.status
        apply(plan, state, record)
        spawned = isinstance(record, r.Spawned)
        assert spawned or state.status == before or state.status in TRANSITIONS[before]


@few
@given(plans(), settings_of_runs, moves(40))
def test_a_run_keeps_the_rules_whatever_happens(plan: Plan, setting: Setting, history: list[Move]) -> None:
    """Rules S1-S9, S12, V1, V2, O2, O4, O5: see `Referee`, `Player` and `without_crashes`."""
    play(plan, setting, history)


@few
@given(families(), settings_of_runs, moves(40))
def test_a_family_keeps_the_rules_whatever_happens(plan: Plan, setting: Setting, history: list[Move]) -> None:
    """Rules C1, C4, S3, S4, R6, O2, O4, O5 with composed children: see `FamilyReferee`."""
    play(plan, setting, history, FamilyPlayer)


@pytest.mark.slow
@pytest.mark.timeout(900)
@many
@given(families(), settings_of_runs, moves(100))
def test_a_family_keeps_the_rules_for_long(plan: Plan, setting: Setting, history: list[Move]) -> None:
    """The same with long histories, and many of them."""
    play(plan, setting, history, FamilyPlayer)


@pytest.mark.slow
@pytest.mark.timeout(900)
@many
@given(plans(), settings_of_runs, moves(100))
def test_a_run_keeps_the_rules_for_long(plan: Plan, setting: Setting, history: list[Move]) -> None:
    """The same with long histories, and many of them."""
    play(plan, setting, history)
