"""Definition errors about annotations: found at once if they can be, else at first use."""

# pyright: reportUnusedClass=false
# the classes are refused; nobody could use them

import gc
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import ModuleType
from typing import Annotated, Any, Generic, Literal, NewType, Protocol, TypedDict, TypeVar

import pytest
from attrs import define
from msgspec import Meta, Struct
from typing_extensions import TypeAliasType

from rewound import DefinitionError, Reactor, Skipped, plan_of, step
from rewound.runtime.declare.mismatch import mismatched, text, unskipped
from tests.runtime.declare.refusals import declare, refuses

T = TypeVar("T")
HEADER = """
from __future__ import annotations
from msgspec import Struct
from rewound import Reactor, Step, step, use
"""

Load = Callable[[str], ModuleType]


@pytest.fixture
def load() -> Iterator[Load]:
    """Run source text as a module, which class statements in it belong to."""
    module = ModuleType("quoted")
    sys.modules["quoted"] = module

    def run(source: str) -> ModuleType:
        exec(HEADER + textwrap.dedent(source), vars(module))  # noqa: S102 - its names are the point
        return module

    yield run
    del sys.modules["quoted"]
    # a reactor that cannot be planned must not be among those that a runtime of a later test finds
    vars(module).clear()
    gc.collect()


def test_locals_of_the_caller() -> None:
    """A quoted annotation may name what is local to the function that declares the class."""

    class Order(Struct):
        id: int

    class Checkout(Reactor["Order"]):
        class Line(Struct):
            count: int

        order: "Order"

        @step
        async def line(self) -> "Checkout.Line":
            return Checkout.Line(1)

        @step
        async def read(self, order: "Order", line: "Line") -> "Order":
            return order

    plan = plan_of(Checkout)
    assert (plan.inputs[0].type, plan.steps["read"].returns, plan.result) == (Order, Order, Order)
    assert plan.steps["line"].returns is Checkout.Line


def test_locals_around_nested_classes() -> None:
    """The names around an enclosing class body count as well."""

    class Order(Struct):
        id: int

    class Outer:
        class Inner(Reactor["Order"]):
            @step
            async def go(self) -> "Order":
                return Order(1)

    assert plan_of(Outer.Inner).steps["go"].returns is Order


def test_defined_later(load: Load) -> None:
    """What is not defined yet is read again at first use (lesson 31)."""
    module = load(
        """
        class Checkout(Reactor["Order"]):
            order: Order
            @step
            async def charge(self, order: Order) -> Order: ...
        """
    )
    message = "is not defined yet (or is imported only under TYPE_CHECKING)."
    for _ in range(2):
        with refuses(f"'Order' in Checkout {message}"):
            plan_of(module.Checkout)
    load("class Order(Struct):\n    id: int")
    assert plan_of(module.Checkout).steps["charge"].returns is module.Order


def test_undefined_in_a_step(load: Load) -> None:
    """The message names the step whose annotation is missing."""
    module = load(
        """
        class Checkout(Reactor[None]):
            @step
            async def charge(self) -> Order: ...
        """
    )
    with refuses("'Order' in Checkout.charge is not defined yet (or is imported only under TYPE_CHECKING)."):
        plan_of(module.Checkout)


def test_undefined_in_a_struct(load: Load) -> None:
    """A struct that names what does not exist is named, with who uses it."""
    with refuses("'Line' in Order, of Checkout.order, is not defined."):
        load(
            """
            class Order(Struct):
                lines: list[Line]

            class Checkout(Reactor[None]):
                order: Order
                @step
                async def charge(self) -> None: ...
            """
        )


def test_unreadable_annotation(load: Load) -> None:
    """An annotation that makes no sense is refused at once."""
    fault = "type object 'Struct' has no attribute 'Missing'"
    with refuses(f"Checkout.charge has an annotation that cannot be read: {fault}"):
        load(
            """
            class Checkout(Reactor[None]):
                @step
                async def charge(self) -> Struct.Missing: ...
            """
        )


def test_repr_before_the_types_are_known(load: Load) -> None:
    """While nobody can tell which inputs are secret, all are masked (A3)."""
    module = load("class Checkout(Reactor[None]):\n    order: Order")
    assert repr(module.Checkout(order=3)) == "Checkout(order='[redacted]')"


def test_step_read_as_something_else() -> None:
    """A result read as what it cannot be is refused."""
    with refuses("Checkout.charge reads 'reserve' as str, but the step 'reserve' returns int."):

        class Checkout(Reactor[None]):
            @step
            async def reserve(self) -> int:
                return 1

            @step
            async def charge(self, reserve: str) -> None: ...


def test_input_read_as_something_else() -> None:
    """So is an input, also by an undo."""
    with refuses("Checkout.back reads 'order' as str, but the input 'order' is int."):

        class Checkout(Reactor[None]):
            order: int

            @step
            async def go(self) -> None: ...

            @go.undo
            async def back(self, order: str) -> None: ...


def test_own_result_read_as_something_else() -> None:
    """So is the result in a step's own undo."""
    with refuses("Checkout.back reads 'result' as str, but the step 'go' returns int."):

        class Checkout(Reactor[None]):
            @step
            async def go(self) -> int:
                return 1

            @go.undo
            async def back(self, result: str) -> None: ...


def test_only_leaf_is_the_result() -> None:
    """Without `returns` the result is that of the one step that nobody reads."""

    class Checkout(Reactor[int]):
        @step
        async def one(self) -> str:
            return ""

        @step
        async def two(self, one: str) -> int:
            return 1

    assert plan_of(Checkout).returns == "two"


def test_several_leaves() -> None:
    """Several leaves need `returns`, except where there is no result."""
    with refuses("Billing: several results possible (labels, totals): add returns = ..."):

        class Billing(Reactor[int]):
            @step
            async def labels(self) -> None: ...

            @step
            async def totals(self) -> int:
                return 1

    class Quiet(Reactor[None]):
        @step
        async def labels(self) -> int:
            return 1

        @step
        async def totals(self) -> int:
            return 1

    assert plan_of(Quiet).returns is None


def test_returns_by_name_and_inherited() -> None:
    """`returns` is a step or its name, and is inherited."""

    class Billing(Reactor[int]):
        @step
        async def labels(self) -> None: ...

        @step
        async def totals(self) -> int:
            return 1

        returns = "totals"

    class More(Billing):
        @step
        async def mail(self) -> None: ...

    assert (plan_of(Billing).returns, plan_of(More).returns) == ("totals", "totals")


@pytest.mark.parametrize(
    ("returns", "message"),
    [
        ("total", "Billing: returns = takes one of its steps, not 'total'. Did you mean 'totals'?"),
        (3, "Billing: returns = takes one of its steps, not 3."),
    ],
)
def test_returns_something_else(returns: Any, message: str) -> None:
    """`returns` names a step of the reactor."""

    async def totals(self: object) -> None: ...

    with refuses(message):
        declare("Billing", {"totals": step(totals), "returns": returns})


def test_result_of_another_type() -> None:
    """The result's type and `Reactor[T]` must not provably disagree."""
    with refuses("Billing is a Reactor[int], but its result is that of 'totals', which returns str."):

        class Billing(Reactor[int]):
            @step
            async def totals(self) -> str:
                return ""

    with refuses("Nothing is a Reactor[None], but its result is that of 'totals', which returns str."):

        class Nothing(Reactor[None]):
            @step
            async def totals(self) -> str:
                return ""

            returns = totals


def test_unstorable_types() -> None:
    """A type whose values cannot be stored is refused where it is declared."""

    class Socket: ...

    rest = "cannot be stored; use built-in values, structs, dataclasses or pydantic models."
    with refuses(f"Checkout.open: its result: a Socket {rest}"):

        class Checkout(Reactor[None]):
            @step
            async def open(self) -> dict[str, Socket]:
                return {}

    with refuses(f"Take.socket: a Socket {rest}"):

        class Take(Reactor[None]):
            socket: Socket

            @step
            async def open(self) -> None: ...

    with pytest.raises(
        DefinitionError, match=r"^Mix\.go: its result: str \| bytes cannot be stored: Type unions"
    ):

        class Mix(Reactor[None]):
            @step
            async def go(self) -> str | bytes:
                return ""


class _Base(Struct):
    id: int


class _Derived(_Base): ...


class _Other(Struct):
    id: int


class _Colour(Enum):
    RED = 1


class _Size(IntEnum):
    BIG = 1


@dataclass
class _Data:
    id: int


@define
class _Attrs:
    id: int


class _Typed(TypedDict):
    id: int


class _HasId(Protocol):
    id: int


class _Box(Struct, Generic[T]):
    inner: T


class _Plain: ...


_Amount = TypeAliasType("_Amount", int)
_Id = NewType("_Id", int)


@pytest.mark.parametrize(
    ("source", "reader", "apart"),
    [
        (int, str, True),
        (int, float, False),
        (float, int, True),
        (bool, int, False),
        (int, None, True),
        (int, int | None, False),
        (int | None, str | None, False),
        (int | None, str, True),
        (Any, str, False),
        (str, object, False),
        (_Id, str, True),
        (_Amount, str, True),
        (_Id, int, False),
        (Annotated[int, Meta(gt=0)], int, False),
        (Literal["a", "b"], str, False),
        (Literal["a"], int, True),
        (Literal["a", 1], bytes, False),
        (_Base, _Derived, False),
        (_Base, _Other, True),
        (_Base, _HasId, False),
        (_Base, _Data, True),
        (_Data, _Attrs, True),
        (_Base, dict, True),
        (_Typed, dict[str, int], False),
        (_Typed, _Base, True),
        (_Colour, str, True),
        (_Size, int, False),
        (list[int], list[str], True),
        (list[int], list[int | str], False),
        (list[int], Sequence[str], False),
        (list[int], dict[str, int], True),
        (dict[str, int], dict[str, str], True),
        (_Box[int], _Box[str], False),
        (_Plain, str, False),
        (T, str, False),
    ],
)
def test_mismatch(source: Any, reader: Any, apart: bool) -> None:  # noqa: FBT001
    """Only types that provably do not fit are refused."""
    assert mismatched(source, reader) is apart


@pytest.mark.parametrize(
    ("annotation", "plain"),
    [
        (int | Skipped[int], int),
        (int | None | Skipped[int], int | None),
        (Skipped[int], int),
        (Skipped, Any),
        (int | Skipped, int),
        (int | None, int | None),
        (list[int], list[int]),
    ],
)
def test_skipped_is_looked_through(annotation: Any, plain: Any) -> None:
    """What readers get of `T | Skipped[T]` is `T` (rule S7)."""
    assert unskipped(annotation) == plain


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "int"),
        (None, "None"),
        (Any, "Any"),
        (dict[str, list[int | None]], "dict[str, list[int | None]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Annotated[int, Meta(gt=0)], "int"),
        (Literal["a", 1], "Literal['a', 1]"),
        (_Base, "_Base"),
        (_Box[int], "_Box[int]"),
        (_Id, "int"),
        (_Amount, "int"),
        (T, "T"),
        (list, "list"),
        ("word", "word"),
    ],
)
def test_types_as_text(annotation: Any, words: str) -> None:
    """A type is written as its author would, without modules, the same in every process."""
    assert text(annotation) == words
