"""Composed children: how they are declared, planned, and given their inputs (rule C1)."""

# mypy: disable-error-code="empty-body"
# pyright: reportUnusedClass=false
# nobody calls the bodies, and some classes are wrong on purpose

from typing import Annotated, Any, Generic, TypeVar

import pytest
from msgspec import Meta, Struct

from rewound import InputError, PayloadError, Reactor, Step, plan_of, step, use, value
from rewound.runtime.declare import child_inputs, compose, decode_result, element, encode_result, load_inputs
from tests.runtime.declare.refusals import declare, refuses

T = TypeVar("T")


class _Report(Struct):
    text: str


class _Audit(Reactor[_Report]):
    """Look at a total."""

    total: Annotated[int, Meta(ge=0)]
    currency: str
    note: str = "none"
    tags: tuple[str, ...] = ()

    @step
    async def report(self) -> _Report: ...


class _Billing(Reactor[_Report]):
    month: str
    tags: tuple[str, ...]

    @step
    async def totals(self) -> int: ...

    @step
    async def first(self) -> None: ...

    audit = compose(_Audit, bind={"total": totals, "currency": value("EUR")}, after="first")

    @step
    async def mail(self, audit: _Report) -> None: ...

    returns = audit


PLAN = plan_of(_Billing)


def inputs_of(results: dict[str, Any], step: str = "audit", tags: Any = ()) -> tuple[Any, bytes]:
    """Make a child's inputs."""
    instance = _Billing(month="m", tags=tags)
    return child_inputs(PLAN, PLAN.steps[step], instance, results.__getitem__)


def test_plan() -> None:
    """A composed child is a step: it needs what fills its inputs, and its result can be read."""
    audit = PLAN.steps["audit"]
    assert (audit.child, audit.needs, audit.undo, audit.compensate) == (
        plan_of(_Audit),
        ("totals", "first"),
        None,
        None,
    )
    assert [(arg.name, arg.source, arg.key, arg.value) for arg in audit.bind] == [
        ("total", "step", "totals", None),
        ("currency", "value", "", "EUR"),
        ("tags", "input", "tags", None),
    ]
    assert (audit.returns, PLAN.returns, PLAN.steps["mail"].needs) == (_Report, "audit", ("audit",))
    assert PLAN.steps["mail"].child is None


def test_result() -> None:
    """The child's result is read as its own step stored it."""
    last, audit = plan_of(_Audit).steps["report"], PLAN.steps["audit"]
    raw, _ = encode_result(last, _Report("fine"), max_payload=100)
    assert decode_result(audit, raw) == _Report("fine")


def test_no_result() -> None:
    """A child without a result gives `None`; one that does not name its result gives its step's."""

    class Silent(Reactor[None]):
        @step
        async def go(self) -> int: ...

    class Untyped(Reactor):
        @step
        async def go(self) -> int: ...

    class Parent(Reactor[None]):
        silent = compose(Silent)
        untyped = compose(Untyped)

    steps = plan_of(Parent).steps
    assert (steps["silent"].returns, steps["untyped"].returns) == (type(None), int)
    assert decode_result(steps["silent"], b"\xc0") is None


def test_inline() -> None:
    """A child may be defined in the body of its parent, and have children of its own."""

    class Outer(Reactor[None]):
        class Middle(Reactor[None]):
            class Inner(Reactor[int]):
                @step
                async def go(self) -> int: ...

            inner = compose(Inner)

        middle = compose(Middle)

    middle = plan_of(Outer).steps["middle"].child
    assert middle is not None
    assert middle is plan_of(Outer.Middle)
    assert middle.steps["inner"].child is plan_of(Outer.Middle.Inner)


def test_named_on_instance() -> None:
    """A composed child has no body to call by hand; it stays a name."""
    assert _Billing(month="m", tags=()).audit is _Billing.audit
    assert (_Billing.audit.__doc__, repr(_Billing.audit)) == ("Look at a total.", "<ComposeDef 'audit'>")
    with pytest.raises(LookupError):
        PLAN.steps["audit"].call.fn()


def test_inputs() -> None:
    """A child's inputs are checked copies, and encoded as those of a run are."""
    made, raw = inputs_of({"totals": 3}, tags=["a"])
    assert made == _Audit(total=3, currency="EUR", tags=("a",))
    assert load_inputs(plan_of(_Audit), raw) == made


def test_inputs_that_do_not_fit() -> None:
    """Inputs that do not fit name the step, and the child's inputs (rule S2)."""
    with pytest.raises(InputError) as caught:
        inputs_of({"totals": -3})
    assert str(caught.value) == "_Billing.audit: invalid inputs: total: Expected `int` >= 0"


def test_inputs_that_are_not_there() -> None:
    """A result that is missing or unreadable names the step (lesson 14)."""
    with pytest.raises(InputError) as caught:
        inputs_of({})
    assert (caught.value.subject, caught.value.fields) == (
        "_Billing.audit",
        {"total": "the step 'totals' has no result"},
    )

    def broken(name: str) -> Any:
        raise PayloadError("torn")

    with pytest.raises(InputError, match=r"total: the result of 'totals' cannot be read: torn"):
        child_inputs(PLAN, PLAN.steps["audit"], _Billing(month="m", tags=()), broken)


def test_inputs_of_a_body() -> None:
    """Only a composed child has inputs of its own."""
    with pytest.raises(LookupError, match=r"_Billing\.mail composes nothing"):
        inputs_of({}, "mail")


def test_not_a_child() -> None:
    """`compose` takes a reactor that can be spawned."""

    class Abstract(Reactor[None]): ...

    class Open(Reactor[T], Generic[T]):
        @step
        async def go(self) -> None: ...

    wrong: Any = int
    with refuses("compose() takes a Reactor, not <class 'int'>."):
        compose(wrong)
    with refuses("compose(Abstract): Abstract has no steps; take a reactor that has some."):
        compose(Abstract)
    with refuses(
        "compose(Open): Open is generic; take a named subclass of it, such as class MyOpen(Open[...])."
    ):
        compose(Open)


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        (
            {"totl": "x"},
            "compose(_Audit): bind names 'totl', which is not an input of _Audit. Did you mean 'total'?",
        ),
        ({"total": 3}, "compose(_Audit): bind={'total': ...} takes a step, a name or value(...), not 3."),
        (
            {"total": element()},
            "compose(_Audit): bind={'total': element()}: only fan_out and map_each have an element.",
        ),
    ],
)
def test_bad_bind(bind: Any, message: str) -> None:
    """`bind=` names inputs of the child, and gives what can be bound."""
    with refuses(message):
        compose(_Audit, bind=bind)


def test_element_of_a_class_step() -> None:
    """A class step has no element either."""

    class Charge(Step[None]):
        amount: int

        async def run(self) -> None: ...

    with refuses("use(Charge): bind={'amount': element()}: only fan_out and map_each have an element."):
        use(Charge, bind={"amount": element()})


def test_bad_after() -> None:
    """`after=` takes steps."""
    wrong: Any = 3
    with refuses("compose(_Audit): after= takes a step or its name, not 3."):
        compose(_Audit, after=wrong)


def test_nothing_fills_an_input() -> None:
    """An input without default that nothing fills is refused, with the remedy."""
    remedy = "Did you mean 'totals'? Bind it: bind={'total': ...}."
    with refuses(f"Billing.audit: no step or input 'total'. {remedy}"):

        class Billing(Reactor[None]):
            @step
            async def totals(self) -> int: ...

            audit = compose(_Audit, bind={"currency": value("EUR")})


def test_types_that_do_not_fit() -> None:
    """What fills an input must be able to fit, a constant included."""
    with refuses("Billing.audit reads 'total' as int, but the step 'totals' returns str."):

        class Billing(Reactor[None]):
            @step
            async def totals(self) -> str: ...

            audit = compose(_Audit, bind={"total": totals, "currency": value("EUR")})

    constant = (
        "bind={'total': value(...)} does not fit: Invoice.audit: invalid inputs: total: Expected `int` >= 0"
    )
    with refuses(f"Invoice.audit: {constant}"):

        class Invoice(Reactor[None]):
            audit = compose(_Audit, bind={"total": value(-1), "currency": value("EUR")})


def test_reading_a_child_as_something_else() -> None:
    """The child's result is what the parent's steps read."""
    with refuses("Billing.mail reads 'audit' as int, but the step 'audit' returns _Report."):

        class Billing(Reactor[None]):
            audit = compose(_Audit, bind={"total": value(1), "currency": value("EUR")})

            @step
            async def mail(self, audit: int) -> None: ...


def test_handlers_of_a_child() -> None:
    """A child has no undo of its own: its steps have theirs."""
    child: Any = compose(_Audit)
    for kind in ("undo", "compensate"):
        with refuses(f".{kind} of a child: give the steps of _Audit their own @step_name.{kind}."):
            getattr(child, kind)


def test_child_in_place_of_a_step() -> None:
    """A subclass may run a child where there was a step, unless that had an undo."""

    class Base(Reactor[None]):
        @step
        async def audit(self) -> _Report: ...

        @audit.undo
        async def forget(self) -> None: ...

    why = "which runs a child here: the child's steps have their own."
    audit = compose(_Audit, bind={"total": value(1), "currency": value("EUR")})
    metaclass: Any = type(Base)
    with refuses(f"Child.forget is the undo of 'audit', {why}"):
        metaclass("Child", (Base,), {"audit": audit})


def test_alias() -> None:
    """A child, too, has one name."""
    audit = compose(_Audit, bind={"total": value(1), "currency": value("EUR")})
    with refuses("Billing: 'again' is 'audit' again; write a step of its own."):
        declare("Billing", {"audit": audit, "again": audit})


def test_child_that_cannot_be_planned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent waits, as its child does, for a name that is not defined yet."""

    class Child(Reactor[None]):
        @step
        async def go(self) -> "Missing": ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    class Parent(Reactor[None]):
        child = compose(Child)

    with refuses("'Missing' in Child.go is not defined yet (or is imported only under TYPE_CHECKING)."):
        plan_of(Parent)
    monkeypatch.setitem(globals(), "Missing", int)
    assert plan_of(Parent).steps["child"].child is plan_of(Child)
