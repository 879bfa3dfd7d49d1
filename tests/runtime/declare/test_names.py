"""Definition errors about names: found when the class is created."""

# mypy: disable-error-code="no-redef, misc, override, assignment, untyped-decorator"
# pyright: reportUnusedClass=false, reportRedeclaration=false, reportIncompatibleVariableOverride=false
# the classes are wrong on purpose; what type checkers say of them is not the point here

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest

from rewound import Reactor, StepError, plan_of, step
from tests.runtime.declare.refusals import declare, refuses


def test_unknown_parameter() -> None:
    """A parameter that names nothing is refused, with what may have been meant."""
    with refuses("Checkout.charge: no step or input 'resrve'. Did you mean 'reserve'?"):

        class Checkout(Reactor[None]):
            @step
            async def reserve(self) -> None: ...

            @step
            async def charge(self, resrve: None) -> None: ...


def test_unknown_parameter_with_a_default() -> None:
    """A default does not excuse a parameter that names nothing."""
    with refuses("Checkout.charge: no step or input 'amount'."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self, amount: int = 3) -> None: ...


def test_reading_a_method() -> None:
    """A plain method is no step; the message says what is missing."""
    with refuses("Checkout.charge reads 'price', which is a method, not a step: add @step."):

        class Checkout(Reactor[None]):
            async def price(self) -> int:
                return 1

            @step
            async def charge(self, price: int) -> None: ...


def test_reading_a_handler() -> None:
    """An undo or compensate has no result to read."""
    with refuses("Checkout.charge reads 'release', which is the undo of 'reserve', not a step."):

        class Checkout(Reactor[None]):
            @step
            async def reserve(self) -> None: ...

            @reserve.undo
            async def release(self) -> None: ...

            @step
            async def charge(self, release: None) -> None: ...


def test_reading_a_class_attribute() -> None:
    """A body attribute without annotation is not an input."""
    with refuses("Checkout.charge reads 'price', which is a class attribute, not an input: annotate it."):

        class Checkout(Reactor[None]):
            price = 3

            @step
            async def charge(self, price: int) -> None: ...


def test_reading_error_in_a_step() -> None:
    """Only a compensate is given `error`."""
    with refuses("Checkout.charge reads 'error', which only a compensate is given."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self, error: StepError) -> None: ...


def test_reading_oneself() -> None:
    """A step cannot read its own result."""
    with refuses("Checkout.charge reads its own result, which is not there before it ran."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self, charge: int) -> None: ...


def test_name_of_an_input_and_a_step() -> None:
    """A name means one thing (msgspec would make the step the input's default)."""
    with refuses("'order' is both an input and a step of Checkout."):

        class Checkout(Reactor[None]):
            order: int

            @step
            async def order(self) -> None: ...  # pyright: ignore[reportRedeclaration]


def test_inherited_name_of_an_input_and_a_step() -> None:
    """A step cannot take the name of an inherited input, nor an input that of an inherited step."""

    class Base(Reactor[None]):
        order: int

        @step
        async def go(self) -> None: ...

    with refuses("'order' is both an input and a step of One."):

        class One(Base):
            @step
            async def order(self) -> None: ...  # pyright: ignore[reportX]

    with refuses("Two.go hides the step 'go': add @step to override it."):

        class Two(Base):
            go: int  # pyright: ignore[reportX]


@pytest.mark.parametrize("name", ["returns", "self", "ctx", "error"])
def test_reserved_names(name: str) -> None:
    """Names with a meaning of their own are neither inputs nor steps."""
    with refuses(f"R: {name!r} is reserved; choose another name."):
        declare("R", {"__annotations__": {name: int}})

    async def body(self: object) -> None: ...

    with refuses(f"R: {name!r} is reserved; choose another name."):
        declare("R", {name: step(body)})


def test_defined_twice() -> None:
    """A step or handler whose name is used again would be lost, so it is refused."""
    with refuses("Checkout defines 'charge' twice; give each a name of its own."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            @step
            async def charge(self) -> None: ...  # noqa: F811

    with refuses("Refund defines '_' twice; give each a name of its own."):

        class Refund(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            @charge.undo
            async def _(self) -> None: ...

            @charge.compensate
            async def _(self) -> None: ...  # pyright: ignore[reportRedeclaration]


def test_two_undos() -> None:
    """A step has one undo."""
    with refuses("Checkout.charge has two undo handlers: refund, again."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            @charge.undo
            async def refund(self) -> None: ...

            @charge.undo
            async def again(self) -> None: ...


def test_alias() -> None:
    """One step object under two names is refused."""
    with refuses("Checkout: 'again' is 'charge' again; write a step of its own."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            again = charge


def test_cycle() -> None:
    """Steps that need each other are refused, with the cycle spelt out."""
    with refuses("Checkout: the steps one <- two <- three <- one need each other; no step could start."):

        class Checkout(Reactor[None]):
            @step
            async def zero(self) -> None: ...

            @step
            async def one(self, two: None, zero: None) -> None: ...

            @step(after="three")
            async def two(self) -> None: ...

            @step
            async def three(self, one: None) -> None: ...

            @step
            async def four(self, one: None) -> None: ...


def test_after() -> None:
    """`after=` takes a step object, its name, or several, also one that a subclass overrides."""

    class Checkout(Reactor[None]):
        @step
        async def one(self) -> None: ...

        @step(after="one")
        async def two(self) -> None: ...

        @step(after=[two, one])
        async def three(self) -> None: ...

    class Child(Checkout):
        @step
        async def one(self) -> None: ...

        @step(after=Checkout.two)
        async def four(self) -> None: ...

    needs = {name: each.needs for name, each in plan_of(Child).steps.items()}
    assert needs == {"one": (), "two": ("one",), "three": ("one", "two"), "four": ("two",)}


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("chrge", "Checkout.ship: after=: no step or input 'chrge'. Did you mean 'charge'?"),
        ("order", "Checkout.ship: after= names 'order', which is an input, not a step."),
    ],
)
def test_after_something_else(after: str, message: str) -> None:
    """`after=` names a step of the reactor."""
    with refuses(message):

        class Checkout(Reactor[None]):
            order: int

            @step
            async def charge(self) -> None: ...

            @step(after=after)
            async def ship(self) -> None: ...


def test_after_a_foreign_step() -> None:
    """`after=` cannot name another reactor's step."""

    class Other(Reactor[None]):
        @step
        async def go(self) -> None: ...

    with refuses("Checkout.ship: after= names a step that Checkout does not have."):

        class Checkout(Reactor[None]):
            @step(after=Other.go)
            async def ship(self) -> None: ...


def test_after_no_step() -> None:
    """`after=` takes steps; an undo or anything else is refused by name."""
    wrong: Any = 3
    with pytest.raises(Exception, match=r"ship: after= takes a step or its name, not 3\.$"):

        @step(after=wrong)
        async def ship(self: object) -> None: ...

    with refuses("Checkout.ship: after= takes a step or its name, not the undo Checkout.refund."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            @charge.undo
            async def refund(self) -> None: ...

            @step(after=cast("Any", refund))  # pyright: ignore[reportX]
            async def ship(self) -> None: ...


def _unfit() -> list[tuple[Any, str]]:
    """List bodies whose parameters cannot be filled by name."""

    async def args(self: object, *rows: int) -> None: ...
    async def kwargs(self: object, **rows: int) -> None: ...
    async def positional(self: object, rows: int, /) -> None: ...
    async def nothing() -> None: ...
    async def keywords(*, ctx: object) -> None: ...

    selfless = "takes no self; a step is a method of its reactor."
    return [
        (args, "R.body: *rows cannot be filled by name; list the parameters."),
        (kwargs, "R.body: **rows cannot be filled by name; list the parameters."),
        (positional, "R.body: positional-only rows cannot be filled by name; take the / out."),
        (nothing, f"R.body {selfless}"),
        (keywords, f"R.body {selfless}"),
    ]


@pytest.mark.parametrize(("body", "message"), _unfit())
def test_unfit_signatures(body: Any, message: str) -> None:
    """Parameters are filled by name, after `self`."""
    with refuses(message):
        declare("R", {"body": step(body)})


def test_body_is_no_function() -> None:
    """`@step` decorates a method."""
    for wrong in (3, staticmethod(print), int):
        decorate: Any = step
        with refuses(f"@step decorates a function that takes self, not {wrong!r}."):
            decorate(wrong)


def test_generators() -> None:
    """A step returns one value; a generator would only look like one."""
    with refuses("Checkout.rows yields; the body of @step returns one value."):

        class Checkout(Reactor[None]):
            @step
            async def rows(self) -> AsyncIterator[int]:
                yield 1

    with refuses("Sync.undo_rows yields; the body of .undo returns one value."):

        class Sync(Reactor[None]):
            @step
            async def rows(self) -> None: ...

            @rows.undo
            def undo_rows(self) -> Iterator[int]:
                yield 1


def test_handler_of_a_foreign_step() -> None:
    """A handler belongs to a step that the reactor has."""

    class Other(Reactor[None]):
        @step
        async def go(self) -> None: ...

    with refuses("Checkout.back is the undo of 'go', which Checkout does not have."):

        class Checkout(Reactor[None]):
            @step
            async def charge(self) -> None: ...

            @Other.go.undo
            async def back(self) -> None: ...
