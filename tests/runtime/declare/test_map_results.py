"""`Results`: what a map gave, read by page (rule M8)."""

from collections.abc import Sequence

import pytest

from rewound import StepError
from rewound.runtime.outcomes import ElementOutcome
from rewound.runtime.results import PAGE, Results

pytestmark = pytest.mark.anyio


class _Stored:
    """Outcomes kept in a list; every tenth element failed, the last halted."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.pages: list[int] = []

    def outcome(self, index: int) -> ElementOutcome[int]:
        """Make an outcome."""
        if index == self.total - 1:
            return ElementOutcome(index, "halted")
        if index % 10 == 3:
            return ElementOutcome(index, "failed", error=StepError("Declined", "no", "charge"))
        return ElementOutcome(index, "completed", index * 2)

    async def page(self, start: int, count: int) -> Sequence[ElementOutcome[int]]:
        """Read some, and note that."""
        self.pages.append(start)
        return [self.outcome(index) for index in range(start, min(start + count, self.total))]


async def test_length_is_known() -> None:
    """The length is there without reading anything."""
    stored = _Stored(250)
    results = Results(stored)
    assert (len(results), repr(results), stored.pages) == (250, "<Results of 250 elements>", [])


async def test_iteration() -> None:
    """Iterating gives the values of what completed, in index order, page after page."""
    stored = _Stored(250)
    found = [value async for value in Results(stored)]
    assert found == [index * 2 for index in range(249) if index % 10 != 3]
    assert stored.pages == [0, PAGE, 2 * PAGE]
    assert await Results(_Stored(250)).all() == found


async def test_outcomes() -> None:
    """`successes`, `failures` and `outcomes` tell the index and what happened, in index order."""
    results = Results(_Stored(15))
    assert [each.index async for each in results.outcomes()] == list(range(15))
    assert [each.index async for each in results.failures()] == [3, 13]
    assert [each.index async for each in results.successes()] == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12]


async def test_nothing() -> None:
    """A map over nothing has no results, and nothing is read."""
    stored = _Stored(0)
    assert (await Results(stored).all(), stored.pages) == ([], [])


async def test_by_index() -> None:
    """One element is read by its place, also counted from the end; neighbours share a page."""
    stored = _Stored(250)
    results = Results(stored)
    assert [await results.get(at) for at in (0, 99, 100, 101, -2, -250)] == [0, 198, 200, 202, 496, 0]
    assert stored.pages == [0, PAGE, 2 * PAGE, 0]
    assert (await results.outcome(-1)).status == "halted"


@pytest.mark.parametrize("index", [2, -3])
async def test_no_such_element(index: int) -> None:
    """An index outside is refused, as that of a list is."""
    with pytest.raises(IndexError, match=rf"element {index} of 2"):
        await Results(_Stored(2)).get(index)


async def test_value_of_a_failure() -> None:
    """An element that did not complete has no value; the message says why."""
    results = Results(_Stored(15))
    with pytest.raises(LookupError, match=r"element 3 is failed: Declined: no; outcome\(3\) tells more"):
        await results.get(3)
    with pytest.raises(LookupError, match=r"element 14 is halted; outcome\(-1\) tells more"):
        await results.get(-1)
