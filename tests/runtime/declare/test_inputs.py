"""Inputs: validation (A1), presence (A2), reading back, redaction (A3)."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, NamedTuple, TypedDict, TypeVar

import msgspec
import pytest
from attrs import define
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from pydantic import BaseModel, field_validator
from typing_extensions import TypeAliasType

from rewound import InputError, Reactor, Redact, plan_of, step
from rewound.runtime.declare import decode_inputs, load_inputs, redacted_inputs
from rewound.runtime.declare.redact import masked

T = TypeVar("T")
Secret = Annotated[str, Redact]


class _Line(Struct):
    count: int
    name: str = ""


class _Order(Struct):
    lines: list[_Line]
    tags: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class _Checkout(Reactor[None]):
    order: _Order
    email: Annotated[str, Meta(pattern=".+@.+")]
    when: datetime | None = None
    labels: list[str] = msgspec.field(default_factory=list[str])

    @step
    async def go(self) -> None: ...


def refused(reactor: type[Reactor[Any]], given: Any) -> dict[str, str]:
    """Give the bad fields that spawning would report."""
    with pytest.raises(InputError) as caught:
        decode_inputs(plan_of(reactor), given)
    assert caught.value.subject == reactor.__name__
    return caught.value.fields


def test_both_forms_are_decoded() -> None:
    """An instance and a mapping give the same decoded copy and the same bytes."""
    plan = plan_of(_Checkout)
    whole = _Checkout(order=_Order([_Line(1)]), email="a@b")
    plain = {"order": {"lines": [{"count": 1}]}, "email": "a@b"}
    assert decode_inputs(plan, whole) == decode_inputs(plan, plain)
    decoded, raw = decode_inputs(plan, whole)
    assert decoded == whole
    assert decoded.order is not whole.order
    assert msgspec.msgpack.decode(raw) == {
        "order": {"lines": [{"count": 1, "name": ""}], "tags": {}},
        "email": "a@b",
        "when": None,
        "labels": [],
    }
    assert load_inputs(plan, raw) == whole


def test_an_instance_is_validated_too() -> None:
    """An instance was not checked when it was made; spawning reports every bad field (A1)."""
    wrong: Any = "one"
    whole = _Checkout(order=_Order([_Line(1), _Line(wrong)]), email="ab", labels=wrong)
    assert refused(_Checkout, whole) == {
        "order.lines.1.count": "Expected `int`, got `str`",
        "email": "Expected `str` matching regex '.+@.+'",
        "labels": "Expected `array`, got `str`",
    }


def test_every_bad_field_of_a_mapping() -> None:
    """Missing, unknown and nested bad fields are reported together, by dotted path (A1)."""
    order = {"lines": [{"count": "x", "name": 3}, {}], "tags": {"a": 1, "b": "2"}}
    assert refused(_Checkout, {"order": order, "emial": "a@b", "when": "soon"}) == {
        "emial": "unknown input. Did you mean 'email'?",
        "email": "required",
        "order.lines.0.count": "Expected `int`, got `str`",
        "order.lines.0.name": "Expected `str`, got `int`",
        "order.lines.1.count": "required",
        "order.tags.b": "Expected `int`, got `str`",
        "when": "Invalid RFC3339 encoded datetime",
    }


@dataclass
class _Point:
    x: int
    y: int = 0


class _Typed(TypedDict):
    x: int


class _Model(BaseModel):
    x: int
    secret: Secret = ""


class _Many(Reactor[None]):
    point: _Point | None = None
    typed: _Typed | None = None
    pair: tuple[int, str] = (1, "")
    either: int | _Line | list[int] = 0
    model: _Model | None = None
    keys: dict[int, str] = {}  # noqa: RUF012 - msgspec copies it

    @step
    async def go(self) -> None: ...


def test_paths_in_every_kind_of_value() -> None:
    """Dataclasses, typed dicts, tuples, unions, models and keys are reported with their paths."""
    given = {
        "point": {"x": "1", "y": "2"},
        "typed": {"x": "1"},
        "pair": [1, 2],
        "either": {"count": "x"},
        "keys": {"a": "b"},
    }
    assert refused(_Many, given) == {
        "point.x": "Expected `int`, got `str`",
        "point.y": "Expected `int`, got `str`",
        "typed.x": "Expected `int`, got `str`",
        "pair.1": "Expected `str`, got `int`",
        "either.count": "Expected `int`, got `str`",
        "keys": "Expected `int`, got `str`",
    }


class _Picky(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        return {"Ada": name}[name]


def test_models_that_fail_otherwise() -> None:
    """Whatever a model's own validators raise is an invalid input."""

    class Greet(Reactor[None]):
        who: _Picky

        @step
        async def go(self) -> None: ...

    assert refused(Greet, {"who": {"name": "Bob"}}) == {"who": "KeyError: 'Bob'"}


def test_models_check_themselves() -> None:
    """A pydantic model is validated by pydantic, and comes back as the model (lesson 36)."""
    plan = plan_of(_Many)
    decoded, raw = decode_inputs(plan, {"model": {"x": "1"}})
    assert decoded.model == _Model(x=1)
    assert load_inputs(plan, raw).model == _Model(x=1)
    assert refused(_Many, {"model": {"x": "no", "secret": 5}}) == {
        "model.x": "Input should be a valid integer, unable to parse string as an integer",
        "model.secret": "Input should be a valid string",
    }


def test_models_do_not_quote_secrets() -> None:
    """What a model says of its fields does not carry their values (A3)."""
    secret = "hidden"[::-1]  # not as it stands in this source, which the traceback quotes
    with pytest.raises(InputError) as caught:
        decode_inputs(plan_of(_Many), {"model": {"x": secret}})
    assert secret not in "".join(traceback.format_exception(caught.value))


def test_models_of_another_kind() -> None:
    """Whatever has `model_dump` and `model_validate` is a model; its own refusal is the message."""

    class Even:
        def __init__(self, number: int) -> None:
            self.number = number

        @classmethod
        def model_validate(cls, raw: int) -> "Even":
            if raw % 2:
                raise ValueError("odd")
            return cls(raw)

        def model_dump(self, **options: bool) -> int:
            return self.number

    class Take(Reactor[None]):
        even: Even

        @step
        async def go(self) -> None: ...

    assert decode_inputs(plan_of(Take), Take(even=Even(2)))[0].even.number == 2
    assert refused(Take, {"even": 3}) == {"even": "odd"}


@pytest.mark.parametrize("empty", [False, 0, "", [], {}])
def test_falsy_values_are_values(empty: Any) -> None:
    """`False`, `0`, `""` and `[]` are values; defaults stand for absent keys only (A2, lesson 32)."""

    class Falsy(Reactor[None]):
        value: bool | int | str | list[int] | dict[str, int] = 7

        @step
        async def go(self) -> None: ...

    plan = plan_of(Falsy)
    decoded, raw = decode_inputs(plan, {"value": empty})
    assert decoded.value == load_inputs(plan, raw).value == empty
    assert decode_inputs(plan, {})[0].value == 7
    assert refused(Falsy, {"value": None})["value"].endswith("got `null`")


def test_default_factories_are_called_for_each_run() -> None:
    """A default that is made is made anew, and stored, so that a later default does not change the run."""

    class Fresh(Reactor[None]):
        items: list[int] = msgspec.field(default_factory=lambda: [1])

        @step
        async def go(self) -> None: ...

    plan = plan_of(Fresh)
    (one, raw), (two, _) = decode_inputs(plan, {}), decode_inputs(plan, Fresh())
    assert one.items == two.items == [1]
    assert one.items is not two.items
    assert msgspec.msgpack.decode(raw) == {"items": [1]}


def test_something_else() -> None:
    """Neither another reactor nor a scalar is taken for inputs."""
    for wrong in (3, _Many()):
        kind = type(wrong).__name__
        assert refused(_Checkout, wrong) == {"*": f"expected a _Checkout or a mapping, got {kind}"}


def test_inputs_that_cannot_be_stored() -> None:
    """A value that cannot be encoded, or would come back as something else, is refused (lesson 37)."""

    class Loose(Reactor[None]):
        data: Any
        rows: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

        @step
        async def go(self) -> None: ...

    remedy = "return built-in values, structs, dataclasses or pydantic models."
    assert refused(Loose, {"data": [1j], "rows": {"a": [Decimal(1)]}}) == {
        "data": f"data[0] is a complex that cannot be stored; {remedy}",
        "rows.a[0]": "a Decimal would come back as something else; annotate it as Decimal",
    }


def test_inputs_that_are_wrong_together() -> None:
    """What a reactor's own `__post_init__` raises is an invalid input, too."""

    class Window(Reactor[None]):
        start: int
        end: int

        def __post_init__(self) -> None:
            if self.end < self.start:
                raise ValueError("end before start")

        @step
        async def go(self) -> None: ...

    assert refused(Window, {"start": 2, "end": 1}) == {"*": "end before start"}


def test_loading_what_another_version_stored() -> None:
    """Inputs that are gone are ignored, new ones have their defaults; what is missing or bad is reported."""
    plan = plan_of(_Checkout)
    raw = msgspec.msgpack.encode({"order": {"lines": []}, "email": "a@b", "gone": 1})
    assert load_inputs(plan, raw) == _Checkout(order=_Order([]), email="a@b")
    with pytest.raises(InputError) as caught:
        load_inputs(plan, msgspec.msgpack.encode({"email": 3}))
    assert caught.value.fields == {"order": "required", "email": "Expected `str`, got `int`"}


class _Card(Struct):
    number: Secret
    name: str


class _Box(Struct, Generic[T]):
    inner: T


@dataclass
class _Login:
    user: str
    password: Secret = field(default="")


class _Pair(NamedTuple):
    key: Secret
    value: int


class _Dict(TypedDict):
    token: Secret
    plain: int


@define
class _Attrs:
    pin: Secret


class _Payment(Reactor[None]):
    token: Secret
    maybe: Secret | None
    card: _Card
    cards: list[_Card]
    by_name: dict[str, Secret]
    boxed: _Box[Secret]
    login: _Login
    pair: _Pair
    typed: _Dict
    attrs: _Attrs
    either: _Card | None
    model: _Model
    fixed: tuple[int, Secret]
    plain: list[int]
    when: datetime

    @step
    async def go(self) -> None: ...


_PAYMENT: Callable[[], _Payment] = lambda: _Payment(  # noqa: E731
    token="s3cret",  # noqa: S106
    maybe=None,
    card=_Card("s3cret", "Ada"),
    cards=[_Card("s3cret", "Bob")],
    by_name={"a": "s3cret"},
    boxed=_Box("s3cret"),
    login=_Login("ada", "s3cret"),
    pair=_Pair("s3cret", 1),
    typed={"token": "s3cret", "plain": 1},
    attrs=_Attrs("s3cret"),
    either=_Card("s3cret", "Eve"),
    model=_Model(x=1, secret="s3cret"),  # noqa: S106
    fixed=(1, "s3cret"),
    plain=[1],
    when=datetime(2026, 11, 1),  # noqa: DTZ001 - the simplest value with an encoding of its own
)


def test_redacted_inputs() -> None:
    """Secrets are masked wherever they are nested; the rest is JSON-like data (A3, lesson 33)."""
    mask = "[redacted]"
    assert redacted_inputs(plan_of(_Payment), _PAYMENT()) == {
        "token": mask,
        "maybe": mask,
        "card": {"number": mask, "name": "Ada"},
        "cards": [{"number": mask, "name": "Bob"}],
        "by_name": {"a": mask},
        "boxed": {"inner": mask},
        "login": {"user": "ada", "password": mask},
        "pair": {"key": mask, "value": 1},
        "typed": {"token": mask, "plain": 1},
        "attrs": {"pin": mask},
        "either": {"number": mask, "name": "Eve"},
        "model": {"x": 1, "secret": mask},
        "fixed": [1, mask],
        "plain": [1],
        "when": "2026-11-01T00:00:00",
    }


def test_repr_is_redacted() -> None:
    """Neither `repr` nor rich's rendering shows a secret; what holds none is shown as it is (A3)."""
    payment = _PAYMENT()
    assert "s3cret" not in repr(payment) + repr(payment.__rich_repr__())
    assert repr(_Many(point=_Point(1)))[:30] == "_Many(point=_Point(x=1, y=0), "


Password = TypeAliasType("Password", Secret)


def test_secret_keys_and_instances() -> None:
    """Keys of a mapping may be secret, and named aliases; `Redact()` is as good as `Redact`."""
    assert masked(["k"], list[Password]) == ["[redacted]"]
    assert masked({"k": 1}, dict[Secret, int]) == {"[redacted]": 1}
    assert masked("k", Annotated[str, Redact()]) == "[redacted]"


def test_unreadable_annotations_hide_everything() -> None:
    """Of a value whose annotations cannot be read nobody knows what is secret, so all of it is (A3)."""

    class Odd(Struct):
        plain: "Missing"  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    assert masked(Odd(1), Any) == {"plain": "[redacted]"}


def test_whatever_has_no_json_form_is_shown_by_repr() -> None:
    """Showing a reactor never fails, not for a value that was never validated, and not for a model."""
    payment: Any = _Many(point=1j, model=_Model(x=1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    inputs = redacted_inputs(plan_of(_Many), payment)
    assert (inputs["point"], inputs["model"]) == ("1j", {"x": 1, "secret": "[redacted]"})


@given(text=st.text())
def test_any_text_is_kept_or_refused(text: str) -> None:
    """Any unicode text comes back as it was (lesson 37)."""
    plan = plan_of(_Checkout)
    given = {"order": {"lines": [{"count": 1, "name": text}]}, "email": "a@b"}
    decoded, raw = decode_inputs(plan, given)
    assert decoded.order.lines[0].name == load_inputs(plan, raw).order.lines[0].name == text
