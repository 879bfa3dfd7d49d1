"""What a shape holds of children, and whether a run may go on with others (A8, rule C1)."""

# mypy: disable-error-code="empty-body"
# nobody calls these bodies

from typing import Any

import msgspec
import pytest

from rewound import Reactor, plan_of, step
from rewound.runtime.declare import Shape, compatible, compose, element, fan_out, map_each, steps_in


class _Charge(Reactor[str]):
    order: int

    @step
    async def check(self) -> int: ...

    @step
    async def charge(self, check: int) -> str: ...


class _Inner(Reactor[str]):
    order: int
    charge = compose(_Charge)


class _New(Reactor[None]):
    order: int

    @step
    async def loaded(self) -> list[int]: ...

    audit = compose(_Inner)
    charges = fan_out(_Charge, over=loaded, bind={"order": element()})


PLAN = plan_of(_New)
CHARGE: Any = ([("order", "int", True)], [("check", [], "int"), ("charge", ["check"], "str")])
GONE: Any = ([("order", "int", True)], [("check", [], "int"), ("gone", [], "str")])
TYPED: Any = ([("order", "str", True)], [("check", [], "str")])
LOADED: Any = ("loaded", [], "list[int]")


def audit(child: Any) -> Any:
    """Write down an older version's composed child, with one more inside."""
    inner: Any = ([("order", "int", True)], [("charge", [], "str", "compose", "", child)])
    return "audit", [], "str", "compose", "", inner


def charges(child: Any, over: str = "loaded") -> Any:
    """Write down an older version's map."""
    return "charges", [over], "Results[str]", "map", over, child


def differences(*steps: Any, completed: Any = (), begun: Any = ()) -> list[str]:
    """Compare an older version with the one at hand."""
    return compatible(([("order", "int", True)], steps), PLAN, completed, begun)


def test_shape() -> None:
    """A shape holds the shapes of children, with what a map iterates, and survives storage."""
    charge = plan_of(_Charge).shape
    assert PLAN.shape[1][1:] == (
        ("audit", (), "str", "compose", "", plan_of(_Inner).shape),
        ("charges", ("loaded",), "Results[str]", "map", "loaded", charge),
    )
    stored = msgspec.msgpack.encode(PLAN.shape)
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(stored, type=Shape)) == stored
    assert steps_in(msgspec.msgpack.decode(stored)) == {"loaded": (), "audit": (), "charges": ("loaded",)}
    assert compatible(msgspec.msgpack.decode(stored), PLAN, set(PLAN.steps)) == []


def test_fingerprint() -> None:
    """A change in a child, however deep, changes the fingerprint; a batch size does not."""

    def parent(result: Any, size: int) -> str:
        async def go(self: object) -> Any: ...

        go.__annotations__["return"] = result

        class Child(Reactor):
            order: int
            made = step(go)

        class Parent(Reactor[None]):
            orders: list[int]
            charges = fan_out(Child, over="orders", batch_size=size)

        return plan_of(Parent).fingerprint

    assert parent(int, 1) == parent(int, 9) != parent(str, 1)


@pytest.mark.parametrize(
    ("steps", "completed", "begun"),
    [
        ((LOADED, audit(GONE), charges(GONE)), {"loaded"}, ()),
        ((LOADED, audit(GONE), charges(CHARGE)), {"loaded", "audit/charge/check"}, ["audit", "audit/charge"]),
        ((LOADED, audit(CHARGE), charges(CHARGE)), {"loaded"}, ["charges", "audit"]),
        ((LOADED, audit(CHARGE), charges(CHARGE)), {"loaded", "audit", "charges"}, ()),
    ],
    ids=["not begun", "begun, but not that step", "begun, the same", "completed, the same"],
)
def test_compatible(steps: Any, completed: Any, begun: Any) -> None:
    """A child that has not begun does not matter, nor does a step of it that had not run."""
    assert differences(*steps, completed=completed, begun=begun) == []


_INCOMPATIBLE: list[tuple[Any, list[str], list[str], list[str]]] = [
    (
        (LOADED, charges(GONE)),
        ["loaded"],
        ["charges"],
        ["charges: step 'gone' has completed, and _Charge has no such step any more"],
    ),
    (
        (LOADED, charges(GONE)),
        ["loaded", "charges"],
        [],
        ["charges: step 'gone' has completed, and _Charge has no such step any more"],
    ),
    (
        (LOADED, audit(GONE)),
        ["audit"],
        [],
        ["audit: charge: step 'gone' has completed, and _Charge has no such step any more"],
    ),
    (
        (LOADED, audit(GONE)),
        ["audit/charge/gone"],
        ["audit", "audit/charge"],
        ["audit: charge: step 'gone' has completed, and _Charge has no such step any more"],
    ),
    (
        (LOADED, charges(TYPED)),
        ["loaded"],
        ["charges"],
        [
            "charges: input 'order' was str, is now int",
            "charges: step 'check' has completed and returned str, now it returns int",
        ],
    ),
    (
        (LOADED, charges(CHARGE, over="rows")),
        ["loaded"],
        ["charges"],
        ["map 'charges' has begun over 'rows', now it is over 'loaded'"],
    ),
    (
        (LOADED, ("charges", ["loaded"], "Results[str]")),
        ["loaded"],
        ["charges"],
        ["step 'charges' has begun as a step, now it is a map"],
    ),
    (
        (("loaded", [], "list[int]", "compose", "", CHARGE), ("gone", [], "str", "compose", "", CHARGE)),
        ["loaded"],
        ["gone"],
        ["step 'loaded' has begun as a composed child, now it is a step"],
    ),
]


@pytest.mark.parametrize(("steps", "completed", "begun", "lines"), _INCOMPATIBLE)
def test_incompatible(steps: Any, completed: Any, begun: Any, lines: list[str]) -> None:
    """What stops a run is said with the way to it; all steps of an element may have completed."""
    assert differences(*steps, completed=completed, begun=begun) == lines


def test_map_each_and_fan_out() -> None:
    """A map may change how it runs its elements, and how many at a time."""

    class Changed(Reactor[None]):
        order: int

        @step
        async def loaded(self) -> list[int]: ...

        charges = map_each(_Charge, over=loaded, bind={"order": element()})

    old = ([("order", "int", True)], [LOADED, charges(CHARGE)])
    assert compatible(old, plan_of(Changed), {"loaded"}, ["charges"]) == []
