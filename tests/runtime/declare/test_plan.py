"""The plan: a reactor's graph as data."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import msgspec

from rewound import Reactor, Skipped, plan_of, step
from rewound.runtime.declare import Shape, steps_in

P = ParamSpec("P")
R = TypeVar("R")


class _Diamond(Reactor[int], version=2):
    order: int
    note: str = ""

    @step
    async def start(self, order: int) -> int:
        return order

    @step
    async def left(self, start: int) -> int:
        return start

    @step(timeout=timedelta(seconds=5), cancel_on_failure=True)
    def right(self, start: int) -> int | Skipped[int]:
        return start

    @step(after=start)
    async def end(self, right: int, left: int) -> int:
        return left + right


def test_graph() -> None:
    """Needs, dependents and roots are in definition order, whatever the order of parameters."""
    plan = plan_of(_Diamond)
    assert {name: each.needs for name, each in plan.steps.items()} == {
        "start": (),
        "left": ("start",),
        "right": ("start",),
        "end": ("start", "left", "right"),
    }
    assert plan.dependents == {
        "start": ("left", "right", "end"),
        "left": ("end",),
        "right": ("end",),
        "end": (),
    }
    assert (plan.roots, plan.returns, plan.result, plan.reactor) == (("start",), "end", int, _Diamond)


def test_step_options() -> None:
    """A step's options are in its plan, durations in seconds."""
    right, left = plan_of(_Diamond).steps["right"], plan_of(_Diamond).steps["left"]
    assert (right.timeout, right.cancel_on_failure, right.guards, right.call.is_async) == (
        5.0,
        True,
        (),
        False,
    )
    assert (left.timeout, left.cancel_on_failure, left.guards, left.call.is_async) == (None, False, (), True)
    assert (right.label, right.returns, right.undo, right.compensate) == ("_Diamond.right", int, None, None)


def test_planned_once() -> None:
    """The plan is worked out once for a class."""
    assert plan_of(_Diamond) is plan_of(_Diamond)


def test_shape_survives_storage() -> None:
    """The shape can be stored as msgpack, and read back."""
    plan = plan_of(_Diamond)
    assert plan.shape == (
        (("order", "int", True), ("note", "str", False)),
        (
            ("start", (), "int"),
            ("left", ("start",), "int"),
            ("right", ("start",), "int"),
            ("end", ("start", "left", "right"), "int"),
        ),
    )
    stored = msgspec.msgpack.encode(plan.shape)
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(stored, type=Shape)) == stored
    assert steps_in(msgspec.msgpack.decode(stored)) == {name: each.needs for name, each in plan.steps.items()}


def test_fingerprint() -> None:
    """The fingerprint depends on shape and version, not on bodies, retries, or the process."""

    def one(version: int, attempts: int) -> Any:
        class Same(Reactor[None], version=version):
            @step(retry=attempts)
            async def go(self) -> int:
                return attempts

        return plan_of(Same).fingerprint

    class Same(Reactor[None]):
        @step
        async def go(self) -> str:
            return ""

    assert one(1, 1) == one(1, 5) == "b01246fca86fefe5"
    assert len({one(1, 1), one(2, 1), plan_of(Same).fingerprint}) == 3


def test_decorated_bodies() -> None:
    """A wrapper made with `functools.wraps` is looked through: its parameters, and whether it is async."""

    def traced(fn: Callable[P, R]) -> Callable[P, R]:
        @wraps(fn)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            return fn(*args, **kwargs)

        return wrapper

    class Traced(Reactor[None]):
        order: int

        @step
        @traced
        async def go(self, order: int) -> int:
            return order

    go = plan_of(Traced).steps["go"]
    assert (go.call.is_async, go.returns, [arg.name for arg in go.call.args]) == (True, int, ["order"])
