"""The cases about maps: how they grow, and what taking them back costs."""

from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from benchmarks.map_reactors import Failing, Marks, OneByOne, Rows, Steady, TenByTen, nested
from benchmarks.report import Measured
from benchmarks.usage import Counting, kept, looking
from rewound import Failed, Reactor, Runtime

if TYPE_CHECKING:
    from benchmarks.cases import Setup

__all__ = ["fanout", "fanout_fail", "nested_maps", "rollback_5ms"]

RETENTION = 60.0
DEPTHS = (4, 8)


def fanout(setup: "Setup") -> Measured:
    """Run one map of `n` elements, 50 in flight, over a source; tell what it leaves in the storage."""
    before = kept(setup.url)
    storage = Counting(setup.url, looking(setup.url))
    working = process_time()
    seconds = setup.loop.run(lambda: _run(storage, Steady(n=setup.n)))
    more = {
        "cpu_seconds": round(process_time() - working, 3),
        "bytes_per_element": _per(kept(setup.url) - before, setup.n),
        "written_per_element": _per(storage.cells, setup.n),
        "writes": storage.writes,
        "parent_bytes": storage.records,
        "connections": storage.connections,
    }
    return Measured("element", setup.n, seconds, (seconds,), more)


def fanout_fail(setup: "Setup") -> Measured:
    """Run a map whose last element fails; compare the way back with the way there."""
    marks = setup.loop.run(lambda: _there_and_back(setup, Failing(n=setup.n, bad=setup.n - 1)))
    there, back = marks.between("began", "failed"), marks.between("failed", "ended")
    return Measured("element", setup.n, there + back, (there, back), _sides(marks))


def rollback_5ms(setup: "Setup") -> Measured:
    """Take `n` elements back whose undo waits 5 ms: 10 at a time, and one at a time."""
    ten = setup.loop.run(lambda: _there_and_back(setup, TenByTen(n=setup.n))).between("failed", "ended")
    one = setup.loop.run(lambda: _there_and_back(setup, OneByOne(n=setup.n))).between("failed", "ended")
    more = {"ten_seconds": round(ten, 3), "one_seconds": round(one, 3), "ratio": round(one / ten, 2)}
    return Measured("element", setup.n, ten, (ten, one), more)


def nested_maps(setup: "Setup") -> Measured:
    """Run maps in maps, two elements in each, 4 and 8 deep; compare the bytes written for an element."""
    written: list[float] = []
    seconds = 0.0
    for depth in DEPTHS:
        storage = Counting(setup.url)
        for _ in range(setup.n):
            seconds = setup.loop.run(lambda: _run(storage, nested(depth)(row=1)))  # noqa: B023
        elements = setup.n * (2 ** (depth + 1) - 2)
        written.append((storage.cells + storage.records) / elements)
    more = {f"bytes_{depth}_deep": round(each, 1) for depth, each in zip(DEPTHS, written, strict=True)}
    more["ratio"] = round(written[-1] / written[0], 3)
    return Measured("element", 2 ** (DEPTHS[-1] + 1) - 2, seconds, (seconds,), more)


async def _run(storage: Counting, reactor: Reactor[int]) -> float:
    async with Runtime(storage, reactors=[type(reactor)], retention=RETENTION) as runtime:
        began = perf_counter()
        await runtime.run(reactor)
        return perf_counter() - began


async def _there_and_back(setup: "Setup", reactor: Rows) -> Marks:
    """Note when it began, when something failed, and when everything had been taken back."""
    marks = Marks()
    state = {"marks": marks}
    async with Runtime(setup.url, reactors=[type(reactor)], state=state, retention=RETENTION) as runtime:
        marks.note("began")
        run = await runtime.spawn(reactor)
        outcome = await run.outcome()
        marks.note("ended")
    if not isinstance(outcome, Failed) or outcome.rollback_failures:
        raise SystemExit(f"the map was to fail and to be taken back, but it ended as {outcome}")
    return marks


def _sides(marks: Marks) -> dict[str, Any]:
    there, back = marks.between("began", "failed"), marks.between("failed", "ended")
    cpu = marks.worked("failed", "ended") / marks.worked("began", "failed")
    return {
        "cpu_ratio": round(cpu, 2),
        "forward_seconds": round(there, 3),
        "rollback_seconds": round(back, 3),
        "ratio": round(back / there, 2),
    }


def _per(total: int, n: int) -> float | None:
    return round(total / n, 1) if total > 0 else None
