"""What a reactor is: a frozen, keyword-only struct with options, which can be inherited."""

# mypy: disable-error-code="misc, override, assignment, type-arg"
# pyright: reportUnusedClass=false, reportRedeclaration=false, reportIncompatibleVariableOverride=false
# the classes are wrong on purpose; what type checkers say of them is not the point here

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from rewound import Context, DefinitionError, Reactor, StepError, plan_of, step
from tests.runtime.declare.refusals import declare, refuses

T = TypeVar("T")

pytestmark = pytest.mark.anyio


class _Greet(Reactor[str]):
    """Say hello."""

    name: str
    loud: bool = False

    @step
    async def hello(self) -> str:
        return f"hello {self.name}"

    @hello.undo
    async def bye(self, hello: str) -> str:
        return f"sorry for {hello}"

    @step
    def shout(self, hello: str, ctx: Context[Any]) -> str:
        """Say it louder."""
        return hello.upper() + ctx.run_id


async def test_steps_are_callable_by_hand() -> None:
    """A unit test calls a step, or its handlers, like the method it is."""
    greet = _Greet(name="Ada")
    hello = await greet.hello()
    assert hello == "hello Ada"
    assert greet.shout(hello, ctx=Context(run_id="!")) == "HELLO ADA!"
    assert await greet.bye(hello) == "sorry for hello Ada"


def test_frozen() -> None:
    """Setting an attribute says what to do instead; as for any frozen object it is an `AttributeError`."""
    greet: Any = _Greet(name="Ada")
    for attribute in ("tmp", "name"):
        with refuses(f"_Greet is frozen: a step cannot set self.{attribute}; return the value instead."):
            setattr(greet, attribute, 1)
    with pytest.raises(AttributeError):
        greet.tmp = 1


def test_keyword_only() -> None:
    """Inputs are given by keyword, in subclasses too, and may follow ones with defaults."""

    class Longer(_Greet):
        text: str

    anything: Any = Longer
    assert anything(name="Ada", text="x").text == "x"
    with pytest.raises(TypeError):
        anything("Ada", False, "x")  # noqa: FBT003


def test_docstrings_are_kept() -> None:
    """A step object has its method's docstring, for the tools that show it."""
    assert _Greet.shout.__doc__ == "Say it louder."


def test_class_keywords() -> None:
    """Options are class keywords, so that inputs may have their names."""

    class Named(Reactor[None], name="named/v1", version=3, timeout=timedelta(minutes=1)):
        name: str = "input"
        version: int
        timeout: int = 5
        guards: list[str]

        @step
        async def go(self) -> None: ...

    plan = plan_of(Named)
    assert (plan.name, plan.version, plan.timeout, plan.guards) == ("named/v1", 3, 60.0, ())
    assert [field.name for field in plan.inputs] == ["name", "version", "timeout", "guards"]


def test_inherited_options() -> None:
    """The timeout is inherited, until given again; name and version are the class's own."""

    class Base(Reactor[None], name="base", version=3, timeout=5):
        @step
        async def go(self) -> None: ...

    class Same(Base): ...

    class Other(Base, timeout=7, guards=[]): ...

    same, other = plan_of(Same), plan_of(Other)
    assert (same.name, same.version, same.timeout, same.guards) == ("Same", 1, 5.0, ())
    assert (other.timeout, other.guards) == (7.0, ())


def test_guards_are_refused() -> None:
    """A guard that would silently not be taken is refused, on a reactor and on a step."""
    with refuses("Guarded: guards= has no effect in this version; leave it out."):

        class Guarded(Reactor[None], guards=["lock"]):
            @step
            async def go(self) -> None: ...

    with refuses("go: guards= has no effect in this version; leave it out."):

        @step(guards=["lock"])
        async def go(self: object) -> None: ...


@pytest.mark.parametrize("keyword", ["name", "version", "timeout", "guards"])
def test_keyword_in_the_body(keyword: str) -> None:
    """An option written as a body attribute names the class keyword."""
    usage = f"class Checkout(Reactor[...], {keyword}='x')"
    with refuses(f"Checkout.{keyword} is a class keyword: write {usage}."):
        declare("Checkout", {keyword: "x"})


def test_methods_may_have_a_keyword_s_name() -> None:
    """A method, property or step is no option, whatever its name."""

    class Free(Reactor[None]):
        @property
        def timeout(self) -> int:
            return 3

        def guards(self) -> int:
            return 4

        @step
        async def name(self) -> None: ...

    assert (Free().timeout, Free().guards(), plan_of(Free).name) == (3, 4, "Free")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "R: name= takes letters, digits and . _ - /, not ''."),
        ({"name": "a b"}, "R: name= takes letters, digits and . _ - /, not 'a b'."),
        ({"name": 3}, "R: name= takes letters, digits and . _ - /, not 3."),
        ({"version": 0}, "R: version= takes a whole number from 1, not 0."),
        ({"version": True}, "R: version= takes a whole number from 1, not True."),
        ({"timeout": 0}, "R: timeout must be more than 0, not 0."),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    """A wrong class keyword is refused by name."""
    with refuses(message):

        class R(Reactor[None], **options): ...


def test_abstract() -> None:
    """A class without steps may be inherited, not spawned."""

    class Base(Reactor[None]):
        order: int

    class Child(Base):
        @step
        async def go(self, order: int) -> None: ...

    with refuses("Base has no steps: it is abstract, to be inherited and not spawned."):
        plan_of(Base)
    assert list(plan_of(Child).steps) == ["go"]


def test_overriding_a_step_keeps_its_undo_and_its_place() -> None:
    """A step and its undo are overridden one by one."""

    class Quiet(_Greet):
        @step
        async def hello(self) -> str:
            return "psst"

    class Polite(_Greet):
        @_Greet.hello.undo
        async def bye(self, hello: str) -> str:
            return "pardon"

    quiet, polite = plan_of(Quiet).steps, plan_of(Polite).steps
    assert list(quiet) == ["hello", "shout"]
    assert quiet["hello"].undo == plan_of(_Greet).steps["hello"].undo
    assert quiet["hello"].call.fn is Quiet.hello.fn
    assert polite["hello"].call.fn is _Greet.hello.fn
    assert polite["hello"].undo is not None
    assert polite["hello"].undo.call.fn is Polite.bye.fn
    assert plan_of(_Greet).steps["hello"].undo != polite["hello"].undo


def test_override_without_decorator() -> None:
    """A plain method that would make a step or handler vanish is refused."""
    with refuses("Lost.hello hides the step 'hello': add @step to override it."):

        class Lost(_Greet):
            async def hello(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
                return ""

    with refuses("Gone.bye hides the undo of 'hello': add @_Greet.hello.undo to override it."):

        class Gone(_Greet):
            async def bye(self, hello: str) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
                return ""


def test_hidden_input() -> None:
    """A bare body attribute may not replace an inherited input; an annotated one is its default."""

    class Base(Reactor[None]):
        order: int

    class Fine(Base):
        order: int = 7

    with refuses("Lost.order hides the input 'order'; annotate it to give it a default."):

        class Lost(Base):
            order = 7  # pyright: ignore[reportIncompatibleVariableOverride]

    assert Fine().order == 7


class _Shared:
    """A plain mixin with a step."""

    @step
    async def shared(self) -> int:
        return 1

    @shared.compensate
    async def clean(self, error: StepError) -> None: ...


def test_mixin() -> None:
    """Steps come from a plain mixin, too, and its instances stay frozen."""

    class Mixed(_Shared, Reactor[int]):
        order: int

    plan = plan_of(Mixed)
    assert plan.returns == "shared"
    assert plan.steps["shared"].compensate is not None


def test_two_bases_with_fields() -> None:
    """Two reactor bases with inputs are refused with the way out."""

    class Base(Reactor[str]):
        order: int

    with refuses("Both has two reactor bases; put shared steps in a plain mixin."):

        class Both(Base, _Greet): ...


def test_generic() -> None:
    """A generic reactor is spawned through a named subclass, whose types its steps then have."""

    class Import(Reactor[T], Generic[T]):
        rows: list[T]
        page: ClassVar[int] = 3

        @step
        async def first(self) -> T:
            return self.rows[0]

    class ImportNames(Import[str]): ...

    class ImportLists(Import[list[T]], Generic[T]): ...

    class ImportNumbers(ImportLists[int]): ...

    with refuses("Import is generic: spawn a named subclass of it, such as class MyImport(Import[...])."):
        plan_of(Import)
    plan, numbers = plan_of(ImportNames), plan_of(ImportNumbers)
    assert (plan.inputs[0].type, plan.steps["first"].returns, plan.result) == (list[str], str, str)
    assert (numbers.inputs[0].type, numbers.steps["first"].returns) == (list[list[int]], list[int])


def test_generic_without_arguments() -> None:
    """A type variable that a subclass leaves open is `Any`."""

    class Import(Reactor[T], Generic[T]):
        @step
        async def first(self) -> T:
            raise NotImplementedError

    class Untyped(Import): ...  # pyright: ignore[reportMissingTypeArgument]

    assert plan_of(Untyped).steps["first"].returns is Any


@pytest.mark.parametrize("wrong", [int, SimpleNamespace(), "Greet"])
def test_plan_of_something_else(wrong: Any) -> None:
    """Only reactors can be planned."""
    with refuses(f"{wrong!r} is not a reactor; derive it from Reactor."):
        plan_of(wrong)


def test_what_msgspec_refuses() -> None:
    """What msgspec does not take as a struct is a definition error that names the class."""
    with pytest.raises(DefinitionError, match=r"^Wrong: Using a non-empty mutable collection"):

        class Wrong(Reactor[None]):
            items: list[int] = [1]  # noqa: RUF012 - the point
