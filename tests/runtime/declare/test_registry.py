"""Which reactors there are."""

import gc
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest

from rewound import Context, Reactor, check_module, lint, plan_of, step
from rewound.runtime.declare import compose, fan_out, plans_for, reactors_defined
from rewound.runtime.results import Results
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


def test_children_come_along() -> None:
    """The reactors that one runs, however deep, are planned with it."""
    inner = make("registry-inner")

    class Element(Reactor[None], name="registry-element"):
        order: int
        run = compose(inner)

    class Parent(Reactor[None], name="registry-parent"):
        orders: list[int]
        all = fan_out(Element, over="orders")

    assert plans_for([Parent]) == {
        "registry-parent": plan_of(Parent),
        "registry-element": plan_of(Element),
        "registry-inner": plan_of(inner),
    }


def test_children_of_one_name() -> None:
    """Where a child's stored name is taken, it runs in its parent only; what was listed is kept."""
    listed, child = make("registry-child"), make("registry-child", int)

    class Parent(Reactor[None], name="registry-parent"):
        run = compose(child)

    several: list[list[type[Any]]] = [[listed, Parent], [Parent, listed]]
    for given in several:
        assert plans_for(given)["registry-child"] is plan_of(listed)


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


def _effects() -> tuple[type[Reactor[Any]], type[Reactor[Any]]]:
    """Define a child whose steps have no undo, but for one, and one with a single step."""

    class Charge(Reactor[None]):
        order: int

        @step
        async def reserve(self) -> None: ...

        @step
        async def charge(self, reserve: None) -> None: ...

        @charge.undo
        async def refund(self) -> None: ...

        returns = charge

    class Print(Reactor[None]):
        order: int

        @step
        async def label(self) -> None: ...

    return Charge, Print


def _remarks(cls: type[Reactor[Any]]) -> list[str]:
    """List what is remarked on a reactor, without the remedy."""
    return [line.partition(": add @")[0] for line in lint(plan_of(cls))]


def test_lint_of_a_composed_child() -> None:
    """A child's step may have to be taken back when a later one fails, in the child or in its parent."""
    charging, printing = _effects()

    class Checkout(Reactor[None]):
        order: int
        pay = compose(charging)
        label = compose(printing, after=pay)

        @step(after=label)
        def last(self) -> None: ...

    assert _remarks(Checkout) == [
        "Charge.reserve has no undo, and charge, label, last may fail after it",
        "Print.label has no undo, and last may fail after it",
    ]


def test_lint_of_a_map() -> None:
    """An element may have to be taken back when another one fails, or a step behind the map."""
    _, printing = _effects()

    class Ship(Reactor[None]):
        orders: list[int]
        labels = fan_out(printing, over="orders")

    class Loose(Reactor[None]):
        orders: list[int]
        labels = fan_out(printing, over="orders", atomic=False)

    class Later(Loose):
        @step(after=Loose.labels)
        def last(self) -> None: ...

    assert _remarks(Ship) == ["Print.label has no undo, and another element of Ship.labels may fail after it"]
    assert _remarks(Loose) == []
    assert _remarks(Later) == ["Print.label has no undo, and last may fail after it"]


def test_lint_of_a_bulk_undo() -> None:
    """A bulk undo takes completed elements back; an element that fails still needs its own undos."""
    charging, _ = _effects()

    class Ship(Reactor[None]):
        orders: list[int]
        paid = fan_out(charging, over="orders")

        @paid.undo_all
        async def take_back(self) -> None: ...

    assert _remarks(Ship) == ["Charge.reserve has no undo, and charge may fail after it"]


def test_lint_of_a_collector() -> None:
    """A collector is `async` only to read results; one that takes `ctx` is taken for effectful."""
    charging, _ = _effects()

    class Pure(Reactor[None]):
        orders: list[int]
        paid = fan_out(charging, over="orders")

        @paid.undo_all
        async def take_back(self) -> None: ...

        @paid.collect
        async def total(self, paid: Results[None]) -> None: ...

        @step
        def last(self, total: None) -> None: ...

    class Effectful(Pure):
        @Pure.paid.collect
        async def total(self, paid: Results[None], ctx: Context[Any]) -> None: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]

    reserve = "Charge.reserve has no undo, and charge may fail after it"
    assert _remarks(Pure) == [reserve]
    assert _remarks(Effectful) == [reserve, "Effectful.total has no undo, and last may fail after it"]
