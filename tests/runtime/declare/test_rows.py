"""What a map iterates: lists, and generators whose rows are stored (rule M4)."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, date, datetime
from functools import wraps
from typing import Any

import pytest

from rewound import Context, EncodeError, InputError, PayloadTooLarge, Reactor, plan_of, step
from rewound.runtime.declare import (
    OutputError,
    Plan,
    decode_item,
    encode_item,
    fan_out,
    list_items,
    open_source,
    source,
)
from rewound.runtime.results import Page
from tests.runtime.declare.mapped import PLAN, Billing, Order

pytestmark = pytest.mark.anyio

BILLING = Billing(month="may", rate=3, given=[Order(1), Order(2)])


class _Day(Reactor[None]):
    day: Any

    @step
    async def go(self) -> None: ...


def given(results: dict[str, Any] | None = None) -> Callable[[str], Any]:
    """Give the results of steps by name."""
    return (results or {}).__getitem__


def opened(
    plan: Plan, name: str, instance: Any, results: dict[str, Any] | None = None, cursor: Any = None
) -> AsyncIterator[Any]:
    """Start the generator of a map."""
    ctx = Context[Any](run_id="r1")
    return open_source(plan, plan.steps[name], instance, given(results), ctx=ctx, cursor=cursor)


async def read(*args: Any, **options: Any) -> list[Any]:
    """Read the generator of a map to its end."""
    return [row async for row in opened(*args, **options)]


def test_list_of_an_input() -> None:
    """A map over an input iterates that list."""
    items = list_items(PLAN, PLAN.steps["from_input"], BILLING, given())
    assert items == [Order(1), Order(2)]


def test_list_of_a_step() -> None:
    """A map over a step iterates what it returned; a tuple is as good as a list."""
    listed = PLAN.steps["listed"]
    assert list_items(PLAN, listed, BILLING, given({"loaded": [Order(3)]})) == [Order(3)]
    assert list_items(PLAN, listed, BILLING, given({"loaded": (Order(3),)})) == (Order(3),)


@pytest.mark.parametrize(("found", "kind"), [(None, "None"), ("abc", "str"), ({1, 2}, "set"), ({}, "dict")])
def test_no_list(found: Any, kind: str) -> None:
    """What turns out to be no list names the map and what it iterates (rule S2)."""
    with pytest.raises(InputError) as caught:
        list_items(PLAN, PLAN.steps["listed"], BILLING, given({"loaded": found}))
    assert str(caught.value) == (
        "Billing.listed: invalid inputs: over: "
        f"the step 'loaded' is a {kind}, and only lists and tuples are iterated"
    )


def test_list_that_is_not_there() -> None:
    """A list that is missing names the map (lesson 14)."""
    with pytest.raises(InputError, match=r"over: the step 'loaded' has no result"):
        list_items(PLAN, PLAN.steps["listed"], BILLING, given())


async def test_plain_generator() -> None:
    """A generator reads inputs, results and `ctx` as a step does."""
    assert await read(PLAN, "charges", BILLING, {"loaded": [Order(9)]}) == [Order(9), Order(3)]


async def test_generator_that_cannot_start() -> None:
    """A generator whose parameters cannot be resolved is not begun (rule S2)."""
    with pytest.raises(InputError, match=r"Billing\.charges: invalid inputs: loaded: .* has no result"):
        opened(PLAN, "charges", BILLING)


async def test_resumable_generator() -> None:
    """A resumable generator yields pages, from the beginning or behind a cursor (M4)."""
    first = [Page([Order(0), Order(1)], 2)]
    assert (await read(PLAN, "paged", BILLING), await read(PLAN, "paged", BILLING, cursor=2)) == (
        first,
        [Page([Order(2), Order(3)], 4)],
    )


async def test_cursor_keeps_its_type() -> None:
    """A cursor is stored as plain data, and given as the type that the generator takes."""

    class Days(Reactor[None]):
        @source
        async def days(self, cursor: datetime | None) -> AsyncIterator[Page[str]]:
            yield Page([repr(cursor)], cursor)

        all = fan_out(_Day, over=days)

    plan = plan_of(Days)
    pages = await read(plan, "all", Days(), cursor="2026-11-30T00:00:00Z")
    assert pages[0].cursor == datetime(2026, 11, 30, tzinfo=UTC)
    with pytest.raises(InputError, match=r"cursor: the stored one does not fit Days\.days: "):
        opened(plan, "all", Days(), cursor="x")


async def test_generator_that_breaks_its_word() -> None:
    """A generator that takes a cursor yields pages, and no other does."""

    class Odd(Reactor[None]):
        @source
        async def rows(self, cursor: Any) -> AsyncIterator[Any]:
            yield 1

        @source
        async def pages(self) -> AsyncIterator[Any]:
            yield Page([1], 1)

        one = fan_out(_Day, over=rows)
        two = fan_out(_Day, over=pages)

    plan = plan_of(Odd)
    with pytest.raises(OutputError, match=r"^Odd\.rows takes a cursor, .* Page\(items, cursor\), not int\.$"):
        await read(plan, "one", Odd())
    with pytest.raises(OutputError, match=r"^Odd\.pages yields a Page, so it must take .* cursor\.$"):
        await read(plan, "two", Odd())


async def test_closing() -> None:
    """A generator that is left before its end is closed at once, and a wrapper is looked through."""
    closed: list[str] = []

    def traced(fn: Callable[..., AsyncIterator[int]]) -> Callable[..., AsyncIterator[int]]:
        @wraps(fn)
        def wrapper(*args: Any, **options: Any) -> AsyncIterator[int]:
            return fn(*args, **options)

        return wrapper

    class Counting(Reactor[None]):
        @source
        @traced
        async def rows(self) -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                closed.append("rows")

        all = fan_out(_Day, over=rows)

    rows: Any = opened(plan_of(Counting), "all", Counting())
    assert await anext(rows) == 1
    await rows.aclose()
    assert closed == ["rows"]


async def test_iterator_without_close() -> None:
    """A wrapper may give an iterator that cannot be closed."""

    class Once:
        """One row."""

        def __init__(self) -> None:
            self.rows = [1]

        def __aiter__(self) -> "Once":
            return self

        async def __anext__(self) -> int:
            if not self.rows:
                raise StopAsyncIteration
            return self.rows.pop()

    def once(fn: Callable[..., AsyncIterator[int]]) -> Callable[..., AsyncIterator[int]]:
        @wraps(fn)
        def wrapper(self: object) -> AsyncIterator[int]:
            return Once()

        return wrapper

    class Short(Reactor[None]):
        @source
        @once
        async def rows(self) -> AsyncIterator[int]:
            yield 7

        all = fan_out(_Day, over=rows)

    assert await read(plan_of(Short), "all", Short()) == [1]


def test_no_generator() -> None:
    """A map over a list has no generator to open."""
    with pytest.raises(LookupError, match=r"Billing\.listed iterates no generator"):
        opened(PLAN, "listed", BILLING)


async def test_source_by_hand() -> None:
    """A source is callable in a unit test."""
    rows = [row async for row in BILLING.rows(ctx=Context(), loaded=[])]
    assert rows == [Order(3)]


def test_stored_row() -> None:
    """A row is stored, and read back as what the generator says it yields."""
    raw = encode_item(PLAN.steps["charges"], Order(5), max_payload=100)
    assert decode_item(PLAN.steps["charges"], raw) == Order(5)


def test_row_that_does_not_fit() -> None:
    """A row that is not what the generator says is refused when it is stored, and when it is read."""
    with pytest.raises(OutputError, match=r"^Billing\.rows yielded no Order: Expected `int`, got `str`"):
        encode_item(PLAN.steps["charges"], {"id": "x"}, max_payload=100)
    with pytest.raises(OutputError, match=r"^Billing\.rows: a stored row is no Order any more: "):
        decode_item(PLAN.steps["charges"], b"\x01")


def test_row_that_is_too_large() -> None:
    """A row has the limit that results have."""
    with pytest.raises(PayloadTooLarge, match=r"^Billing\.rows: a row takes 5 bytes, more than max"):
        encode_item(PLAN.steps["charges"], Order(5), max_payload=4)


def test_row_that_cannot_be_kept() -> None:
    """A row that cannot be stored, or would come back as something else, is refused by name."""

    class Loose(Reactor[None]):
        @source
        async def rows(self) -> AsyncIterator[Any]:
            yield 1

        all = fan_out(_Day, over=rows)

    step_plan = plan_of(Loose).steps["all"]
    with pytest.raises(EncodeError, match=r"^Loose\.rows: row\.a is a object that cannot be stored"):
        encode_item(step_plan, {"a": object()}, max_payload=100)
    with pytest.raises(EncodeError, match=r"^Loose\.rows: row\.a is a date and would come back as"):
        encode_item(step_plan, {"a": date(2026, 1, 1)}, max_payload=100)
    assert decode_item(step_plan, encode_item(step_plan, {"a": 1}, max_payload=100)) == {"a": 1}
