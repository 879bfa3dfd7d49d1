"""Results: encoding, the output check (A5), and what survives storage (lessons 36 and 37)."""

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, TypedDict

import pytest
from attrs import define
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel, Field, SecretStr

from rewound import EncodeError, PayloadTooLarge, Reactor, Skipped, plan_of, step
from rewound.runtime.declare import OutputError, StepPlan, decode_result, encode_result

MIB = 1 << 20


def returning(annotation: Any) -> StepPlan:
    """Plan a step whose result is annotated so."""

    async def make(self: object) -> Any: ...

    make.__annotations__["return"] = annotation
    metaclass: Any = type(Reactor)
    return plan_of(metaclass("Make", (Reactor,), {"make": step(make)})).steps["make"]


def back(annotation: Any, value: Any) -> Any:
    """Store a result and read it again."""
    plan = returning(annotation)
    return decode_result(plan, encode_result(plan, value, max_payload=MIB)[0])


class _Receipt(Struct):
    id: int
    total: Decimal = Decimal(0)


class _Detailed(_Receipt):
    lines: list[str] = []


@dataclass
class _Data:
    when: datetime


@define
class _Attrs:
    names: set[str]


class _Pair(NamedTuple):
    one: int
    two: str


class _Typed(TypedDict):
    id: int


class _Colour(Enum):
    RED = "red"


class _Model(BaseModel):
    total: Decimal = Field(alias="theTotal")
    names: set[str] = set()


WHEN = datetime(2026, 11, 1, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (None, None),
        (bool, False),
        (str, ""),
        (int, -(2**63)),
        (int, 2**64 - 1),
        (float, math.inf),
        (bytes, b"\xff\x00"),
        (Decimal, Decimal("1.10")),
        (datetime, WHEN),
        (datetime, WHEN.replace(tzinfo=None)),
        (date, WHEN.date()),
        (time, time(1, 2, 3, 4)),
        (timedelta, timedelta(days=-1, microseconds=1)),
        (uuid.UUID, uuid.UUID(int=1)),
        (set[int], {1, 2}),
        (frozenset[str], frozenset({"a"})),
        (tuple[int, str], (1, "a")),
        (tuple[int, ...], (1, 2)),
        (dict[tuple[int, int], str], {(1, 2): "a"}),
        (_Receipt, _Receipt(1, Decimal("2.50"))),
        (list[_Receipt | None], [_Receipt(1), None]),
        (_Data, _Data(WHEN)),
        (_Attrs, _Attrs({"a"})),
        (_Pair, _Pair(1, "a")),
        (_Typed, {"id": 1}),
        (_Colour, _Colour.RED),
        (_Model, _Model(theTotal=Decimal("1.10"), names={"a"})),
        (Any, {"a": [1, 1.5, None, True, "x", b"y", WHEN]}),
        (object, [{1: 2}]),
        (dict[str, Any], {"a": {"b": [WHEN]}}),
        (dict[str, object], {"a": [1]}),
        (Any | None, [1]),
    ],
)
def test_types_survive_storage(annotation: Any, value: Any) -> None:
    """A value of an annotated type comes back equal and of the same type (lessons 32, 36 and 37)."""
    result = back(annotation, value)
    assert result == value
    assert type(result) is type(value)


class _Tree(Struct):
    value: Any
    branches: list["_Tree"]


def test_types_that_contain_themselves() -> None:
    """A struct may contain itself; losses are found in its depths, too."""
    tree = _Tree(1, [_Tree([2], [])])
    assert back(_Tree, tree) == tree
    with pytest.raises(EncodeError, match=r"result\.branches\[0\]\.value is a Decimal"):
        back(_Tree, _Tree(1, [_Tree(Decimal(1), [])]))


def test_nan_survives() -> None:
    """NaN comes back as NaN (lesson 37)."""
    assert math.isnan(back(float, math.nan))


def test_zones_become_utc() -> None:
    """An aware datetime keeps its instant, and comes back in UTC."""
    assert back(datetime, WHEN).tzinfo is UTC


LEAVES = st.none() | st.booleans() | st.floats() | st.text() | st.binary() | st.integers()
LOOSE = st.recursive(
    LEAVES | st.decimals() | st.dates() | st.uuids(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.tuples(inner)
        | st.frozensets(LEAVES)
    ),
)


@given(value=LOOSE)
@example(2**64)
@example("\ud800")
@example({"a": [{"b": "\ud800"}]})
def test_unannotated_values_survive_or_are_refused(value: Any) -> None:
    """What nobody annotated comes back as it was, or is refused by name; it never changes (lesson 37)."""
    try:
        result = back(Any, value)
    except EncodeError as error:
        assert str(error).startswith("Make.make: result")  # noqa: PT017 - either outcome is right
    else:
        assert repr(result) == repr(value)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (Any, Decimal(1), "result is a Decimal and would come back as something else, because -> Any does"),
        (
            Any,
            {"a": [(1,)]},
            "result.a[0] is a tuple and would come back as something else, because -> Any does",
        ),
        (Any, {"a": {1}}, "result.a is a set and would"),
        (Any, _Receipt(1), "result is a _Receipt and would"),
        (Any, {Decimal(1): 1}, "result[Decimal('1') as key] is a Decimal and would"),
        (Any, {2: _Colour.RED}, "result[2] is a _Colour and would"),
        (Any, WHEN.replace(tzinfo=None), "result is a datetime and would"),
        (object, _Model(theTotal=Decimal(1)), "result is a _Model and would"),
        (dict[str, Any], {"a": Decimal(1)}, "result.a is a Decimal and would"),
        (list, [Decimal(1)], "result[0] is a Decimal and would"),
        (tuple[int, Any], (1, Decimal(1)), "result[1] is a Decimal and would"),
        (dict[str, Any] | None, {"a": Decimal(1)}, "result.a is a Decimal and would"),
        (Any | None, Decimal(1), "result is a Decimal and would"),
    ],
)
def test_losses_are_refused(annotation: Any, value: Any, message: str) -> None:
    """A part that the annotation leaves open and that would change is refused, with its path and type."""
    with pytest.raises(EncodeError) as caught:
        back(annotation, value)
    assert str(caught.value).startswith(f"Make.make: {message}")


def _own() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, "result is a complex that cannot be stored; return"),
        ({"a": [1, object()]}, "result.a[1] is a object that cannot be stored; return"),
        (2**64, "result is a int that cannot be stored (can't serialize ints"),
        (["\ud800"], "result[0] is a str that cannot be stored ('utf-8' codec"),
        (_Data(1j), "result.when is a complex that"),  # type: ignore[arg-type]
        (_own(), "result is nested too deeply to be stored, or contains itself."),
        (SecretStr("x"), "result is a SecretStr that cannot be stored; return"),
        (_Receipt, "result is a StructMeta that cannot be stored; return"),
    ],
)
def test_unencodable_values(value: Any, message: str) -> None:
    """A value that cannot be stored is refused with its step, path and type."""
    with pytest.raises(EncodeError) as caught:
        back(Any, value)
    assert str(caught.value).startswith(f"Make.make: {message}")


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "x", "says -> int, but returned otherwise: Expected `int`, got `str`"),
        (None, 1, "says -> None, but returned otherwise: Expected `null`, got `int`"),
        (
            _Receipt,
            {"id": "x"},
            "says -> _Receipt, but returned otherwise: Expected `int`, got `str` - at `$.id`",
        ),
        (
            _Receipt,
            _Detailed(1),
            "says -> _Receipt, but returned a _Detailed, which would come back as a _Receipt.",
        ),
    ],
)
def test_output_check(annotation: Any, value: Any, message: str) -> None:
    """A result that is not what the annotation says is the step's own fault (A5)."""
    with pytest.raises(OutputError) as caught:
        back(annotation, value)
    assert str(caught.value) == f"Make.make {message}"


def test_too_large() -> None:
    """A result over the limit is refused with its size; one of exactly that size is not."""
    plan = returning(bytes)
    encode_result(plan, b"x" * 98, max_payload=100)
    with pytest.raises(PayloadTooLarge) as caught:
        encode_result(plan, b"x" * 99, max_payload=100)
    remedy = "store it elsewhere and return a reference."
    assert str(caught.value) == f"Make.make: the result takes 101 bytes, more than max_payload=100; {remedy}"


def test_skipped() -> None:
    """`Skipped(value)` stores the value, and says so (rule S7)."""
    plan = returning(int | Skipped[int])
    assert encode_result(plan, Skipped(3), max_payload=MIB) == (b"\x03", True)
    assert encode_result(plan, 3, max_payload=MIB) == (b"\x03", False)


def test_stored_result_that_does_not_fit_any_more() -> None:
    """A stored result that the annotation does not admit is refused by name."""
    with pytest.raises(OutputError) as caught:
        decode_result(returning(int), b"\xa1x")
    assert str(caught.value) == "Make.make: the stored result does not fit -> int: Expected `int`, got `str`"


def test_mappings_and_subclasses_become_what_is_annotated() -> None:
    """A reader gets what the annotation says, also where the value was merely compatible."""
    assert back(_Receipt, {"id": 1, "total": "2.5"}) == _Receipt(1, Decimal("2.5"))
    assert back(Mapping[str, int], {"a": 1}) == {"a": 1}
    assert back(list[int], (1, 2)) == [1, 2]
