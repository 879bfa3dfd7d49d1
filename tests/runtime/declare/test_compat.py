"""Whether a run that an older version started may go on (A8)."""

from typing import Any

import msgspec
import pytest

from rewound import Reactor, plan_of, step
from rewound.runtime.declare import compatible


class _New(Reactor[None]):
    order: int
    note: str = ""
    size: int | None = None

    @step
    async def reserve(self) -> int | None: ...

    @step
    async def check(self, reserve: int | None) -> str:
        return ""

    @step
    async def charge(self, reserve: int | None, check: str) -> str:
        return ""


PLAN = plan_of(_New)
ORDER: Any = ("order", "int", True)
RESERVE: Any = ("reserve", (), "int | None")
CHECK: Any = ("check", ["reserve"], "str")
CHARGE: Any = ("charge", ["reserve", "check"], "str")


@pytest.mark.parametrize(
    ("inputs", "steps", "completed"),
    [
        ([ORDER], [RESERVE, CHECK, CHARGE], {"reserve", "check", "charge"}),
        ([ORDER, ("gone", "str", True)], [RESERVE], {"reserve"}),
        ([ORDER, ("size", "int", True)], [RESERVE], {"reserve"}),
        ([ORDER], [("reserve", (), "int")], {"reserve"}),
        ([ORDER], [RESERVE, ("gone", (), "str")], {"reserve"}),
        ([ORDER], [RESERVE, ("charge", (), "int")], {"reserve"}),
    ],
    ids=[
        "same",
        "input removed",
        "input widened",
        "result widened",
        "pending step removed",
        "pending retyped",
    ],
)
def test_compatible(inputs: list[Any], steps: list[Any], completed: set[str]) -> None:
    """New steps that nothing completed needs, new optional inputs and wider types do not stop a run."""
    assert compatible((inputs, steps), PLAN, completed) == []


@pytest.mark.parametrize(
    ("inputs", "steps", "completed", "lines"),
    [
        ([], [RESERVE], {"reserve"}, ["input 'order' is new and has no default"]),
        ([("order", "str", True)], [RESERVE], (), ["input 'order' was str, is now int"]),
        (
            [ORDER],
            [("gone", (), "str")],
            ["gone"],
            ["step 'gone' has completed, and _New has no such step any more"],
        ),
        (
            [ORDER],
            [("reserve", (), "str")],
            ["reserve"],
            ["step 'reserve' has completed and returned str, now it returns int | None"],
        ),
        (
            [ORDER],
            [RESERVE, ("charge", ["reserve"], "str")],
            ["reserve", "charge"],
            ["step 'charge' has completed, and now depends on 'check', which has not"],
        ),
    ],
)
def test_incompatible(inputs: list[Any], steps: list[Any], completed: Any, lines: list[str]) -> None:
    """What does stop a run is said in words."""
    assert compatible((inputs, steps), PLAN, completed) == lines


def test_stored_shape() -> None:
    """The shape is compared as storage gives it back: lists for tuples."""
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(PLAN.shape))
    assert compatible(stored, PLAN, set(PLAN.steps)) == []


def test_any_admits_everything() -> None:
    """A type that became `Any` admits what it was."""

    class Loose(Reactor[None]):
        @step
        async def reserve(self) -> Any: ...

    assert compatible(([], [("reserve", (), "int")]), plan_of(Loose), {"reserve"}) == []
