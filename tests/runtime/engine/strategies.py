"""Random plans and random histories, for Hypothesis."""

from typing import Literal, TypeAlias

from hypothesis import strategies as st
from msgspec import Struct

from rewound.runtime.declare import Plan, StepPlan
from tests.runtime.engine.plans import composed, plan_for, step

__all__ = ["KINDS", "Kind", "Move", "Setting", "families", "moves", "plans", "settings_of_runs"]

NAMES = "hgfedcba"
"""Not in alphabetical order: an engine that sorts where it must not is noticed."""

Kind: TypeAlias = Literal[
    "end",
    "end later",
    "deliver",
    "handle",
    "tick",
    "tick early",
    "undo",
    "cancel",
    "retry",
    "repeat",
    "die",
    "die before commit",
    "die after commit",
    "release",
    "park",
]

WEIGHTS: dict[Kind, int] = {
    "end": 14,
    "handle": 8,
    "tick": 3,
    "end later": 3,
    "deliver": 3,
    "tick early": 1,
    "undo": 1,
    "cancel": 1,
    "retry": 1,
    "repeat": 1,
    "die": 1,
    "die before commit": 1,
    "die after commit": 1,
    "release": 1,
    "park": 1,
}
KINDS: list[Kind] = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]


class Move(Struct, frozen=True):
    """One thing that happens: what, to which of those it could happen to, and how it goes."""

    kind: Kind
    pick: int
    how: int


class Setting(Struct, frozen=True):
    """The circumstances of a run."""

    slots: int = 3
    queued: bool = False
    max_recoveries: int = 5


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw a graph of 1 to 8 steps, each needing some of those before it."""
    count = draw(st.integers(1, len(NAMES)))
    timeout = draw(st.sampled_from([None, None, 25.0]))
    return plan_for(*(draw(_steps(index)) for index in range(count)), timeout=timeout)


@st.composite
def families(draw: st.DrawFn, depth: int = 2) -> Plan:
    """Draw a plan in which one step is a composed child, which may have one in turn.

    One child a level: then the handlers of all levels run one at a time, as `World` wants it.
    """
    count = draw(st.integers(1, 4))
    chosen = [draw(_steps(index)) for index in range(count)]
    if depth:
        place = draw(st.integers(0, count - 1))
        old = chosen[place]
        chosen[place] = composed(old.name, draw(families(depth=draw(st.integers(0, depth - 1)))), *old.needs)
    return plan_for(*chosen)


def _steps(index: int) -> st.SearchStrategy[StepPlan]:
    before = NAMES[:index]
    needs = st.lists(st.sampled_from(before), unique=True, max_size=2) if before else st.just([])
    options = st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 2), st.booleans())

    def make(needed: list[str], chosen: tuple[int, int, int, bool]) -> StepPlan:
        attempts, undo, compensate, cancel = chosen
        return step(
            NAMES[index],
            *needed,
            attempts=attempts,
            undo=undo,
            compensate=compensate,
            cancel_on_failure=cancel,
        )

    return st.builds(make, needs, options)


def moves(longest: int) -> st.SearchStrategy[list[Move]]:
    """Draw up to so many moves; most of them let a body or handler end.

    Half of them are always drawn: Hypothesis likes short lists, in which little can happen. Nothing is lost
    by that, for the simplest move only lets a body succeed.
    """
    move = st.builds(Move, st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 15))
    return st.lists(move, min_size=longest // 2, max_size=longest)


settings_of_runs = st.builds(Setting, st.integers(1, 4), st.booleans(), st.integers(0, 3))
"""Few slots, so that steps wait; few recoveries, so that runs are parked."""
