"""Which reactors there are."""

import gc
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest

from rewound import Reactor, check_module, lint, plan_of, step
from rewound.runtime.declare import plans_for, reactors_defined
from tests.runtime.declare.refusals import refuses

T = TypeVar("T")


def make(name: str, result: Any = None) -> type[Reactor[Any]]:
    """Define a reactor."""

    async def go(self: object) -> Any: ...

    go.__annotations__["return"] = result

    class Made(Reactor[None], name=name):
        gone = step(go)

    return Made


def named(name: str) -> list[type[Any]]:
    """List the reactors defined under a stored name."""
    return [each for each in reactors_defined() if plan_of(each).name == name]


def test_newest_definition_wins() -> None:
    """A reactor redefined under its name takes the older one's place, and is planned anew (lesson 31)."""
    old, new = make("registry-twice"), make("registry-twice", int)
    assert named("registry-twice") == [new]
    assert plan_of(old).fingerprint != plan_of(new).fingerprint


def test_only_what_can_be_spawned() -> None:
    """Abstract and generic reactors are not listed."""

    class Abstract(Reactor[None]): ...

    class Open(Reactor[T], Generic[T]):
        @step
        async def go(self) -> None: ...

    assert not {Abstract, Open} & set(reactors_defined())


def test_weak() -> None:
    """The registry keeps no reactor alive."""
    make("registry-weak")
    gc.collect()
    assert named("registry-weak") == []


def test_plans_by_name() -> None:
    """Reactors are planned by stored name; naming one twice is no fault."""
    one, two = make("registry-one"), make("registry-two")
    assert plans_for([one, two, one]) == {"registry-one": plan_of(one), "registry-two": plan_of(two)}


def test_two_of_one_name() -> None:
    """Two reactors of one stored name are refused."""
    where = f"{__name__}.Made"
    with refuses(f"{where} and {where} have one stored name, 'registry-same': give one of them name=..."):
        plans_for([make("registry-same"), make("registry-same")])


def test_check_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rewound check` plans every reactor of a module, and lists what is wrong with each."""

    class Fine(Reactor[None]):
        @step
        async def go(self) -> None: ...

    class Abstract(Reactor[None]): ...

    class Open(Reactor[T], Generic[T]):
        @step
        async def go(self) -> None: ...

    class Broken(Reactor[None]):
        @step
        async def go(self) -> "Missing": ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    module = ModuleType("app")
    vars(module).update(Fine=Fine, Abstract=Abstract, Open=Open, Broken=Broken, again=Broken, other=3)
    found = [str(error) for error in check_module(module)]
    assert found == ["'Missing' in Broken.go is not defined yet (or is imported only under TYPE_CHECKING)."]
    monkeypatch.setitem(globals(), "Missing", int)
    assert check_module(module) == []


def test_lint() -> None:
    """A step that looks effectful, has no undo and may have to be taken back is remarked on."""

    class Checkout(Reactor[None]):
        @step
        def compute(self) -> int:
            return 1

        @step
        async def reserve(self, compute: int) -> None: ...

        @step
        async def charge(self, reserve: None) -> None: ...

        @charge.undo
        async def refund(self) -> None: ...

        @step(retry=2)
        def ship(self, charge: None) -> None: ...

        @step
        async def mail(self, ship: None) -> None: ...

    remedy = "(with an empty body, if there is nothing to take back)."
    assert lint(plan_of(Checkout)) == [
        f"Checkout.reserve has no undo, and charge, ship, mail may fail after it: add @reserve.undo {remedy}",
        f"Checkout.ship has no undo, and mail may fail after it: add @ship.undo {remedy}",
    ]
