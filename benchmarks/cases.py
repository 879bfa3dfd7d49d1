"""What is measured. Each case takes a set-up and returns what it found out."""

from collections.abc import Callable, Sequence
from time import perf_counter

import anyio
import msgspec
from msgspec import Struct

from benchmarks.floors import CALLERS, Floor, floor_of
from benchmarks.loops import Loop
from benchmarks.maps import fanout, fanout_fail, nested_maps, rollback_5ms
from benchmarks.reactors import FiveSteps, Small, ThreeSteps
from benchmarks.recovery import recovery, recovery_of_map
from benchmarks.report import Measured, median, milliseconds, peak_mib
from rewound import Reactor, Runtime

__all__ = ["CASES", "Case", "Setup"]

IN_FLIGHT = 100
ROUNDS = 5
STEPS = 5
WARM_UP = 20
RETENTION = 60.0
"""Seconds: so that a store which outlives the case does not keep its runs."""

Start = Callable[[int], Reactor[Small]]


class Setup(Struct, frozen=True):
    """Where and how much to measure.

    Args:
        url: of the storage.
        n: runs, commits or steps, as the case says.
        loop: to measure on.
    """

    url: str
    n: int
    loop: Loop


class Round(Struct, frozen=True):
    """Runs, and what the storage could do at all just before them.

    Args:
        floor: that; `None` for memory.
        seconds: that all runs took.
        took: seconds that each run took.
    """

    floor: Floor | None
    seconds: float
    took: Sequence[float]


class Case(Struct, frozen=True):
    """One case.

    Args:
        measure: carries it out.
        n: how many, if nobody says.
    """

    measure: Callable[[Setup], Measured]
    n: int


def floor(setup: Setup) -> Measured:
    """Measure `n` bare commits of one caller, and as many of 100 callers whose commits leave together."""
    measured = floor_of(setup.url, setup.loop, setup.n)
    if measured is None:
        raise SystemExit("memory:// has no floor: a commit there is nothing but the library's own rules")
    grouped = {"callers": CALLERS, "grouped_per_second": round(measured.grouped, 1)}
    return Measured("commit", len(measured.single), sum(measured.single), measured.single, grouped)


def sequential(setup: Setup) -> Measured:
    """Run 5-step runs one after another. A step took a fifth of its run: spawning and ending count, too."""
    rounds = _beside_the_floor(setup, in_flight=1)
    per_step = [each / STEPS for one in rounds for each in one.took]
    floors = [(one.floor.p50, _median(one.took) / STEPS) for one in rounds if one.floor]
    more = {
        "floor_p50_ms": milliseconds(median([floor for floor, _ in floors])),
        "p50_ratio": _rounded(median([took / floor for floor, took in floors])),
    }
    return Measured("step", setup.n * STEPS, sum(one.seconds for one in rounds), per_step, more)


def concurrent(setup: Setup) -> Measured:
    """Run 5-step runs, 100 in flight. The percentiles are those of whole runs."""
    rounds = _beside_the_floor(setup, in_flight=IN_FLIGHT)
    took = [each for one in rounds for each in one.took]
    floors = [(one.floor.grouped, len(one.took) * STEPS / one.seconds) for one in rounds if one.floor]
    more = {
        "floor_per_second": _rounded(median([floor for floor, _ in floors])),
        "ratio": _rounded(median([rate / floor for floor, rate in floors])),
    }
    return Measured("step", setup.n * STEPS, sum(one.seconds for one in rounds), took, more)


def spawn(setup: Setup) -> Measured:
    """Spawn 3-step runs one after another and wait for each one's result."""
    seconds, took = _timed(setup, lambda number: ThreeSteps(number=number), in_flight=1)
    return Measured("run", setup.n, seconds, took)


def steps(setup: Setup) -> Measured:
    """Do `n` steps in 5-step runs, 100 in flight: once warm, the process shall not grow."""

    async def measure() -> Measured:
        async with Runtime(setup.url, reactors=[FiveSteps], retention=RETENTION) as runtime:
            runs, began = -(-setup.n // STEPS), perf_counter()
            took = await _drive(runtime, _five, runs // 5, IN_FLIGHT)
            warm = peak_mib()
            took += await _drive(runtime, _five, runs - runs // 5, IN_FLIGHT)
            seconds, full = perf_counter() - began, peak_mib()
        more = {
            "peak_20_mib": round(warm, 1),
            "peak_100_mib": round(full, 1),
            "growth": round(full / warm, 3),
        }
        return Measured("step", runs * STEPS, seconds, took, more)

    return setup.loop.run(measure)


def _five(number: int) -> Reactor[Small]:
    return FiveSteps(number=number)


def _beside_the_floor(setup: Setup, *, in_flight: int) -> list[Round]:
    """Measure the floor and 5-step runs by turns, so that a machine with other work slows both."""
    rounds: list[Round] = []
    for number in range(ROUNDS):
        runs = setup.n // ROUNDS + (number < setup.n % ROUNDS)
        if runs:
            floor = floor_of(setup.url, setup.loop, max(CALLERS, runs * STEPS // 2))
            seconds, took = _timed(msgspec.structs.replace(setup, n=runs), _five, in_flight=in_flight)
            rounds.append(Round(floor, seconds, took))
    return rounds


def _median(values: Sequence[float]) -> float:
    return median(values) or 0.0


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _timed(setup: Setup, start: Start, *, in_flight: int) -> tuple[float, Sequence[float]]:
    async def measure() -> tuple[float, Sequence[float]]:
        async with Runtime(setup.url, reactors=[FiveSteps, ThreeSteps], retention=RETENTION) as runtime:
            await _drive(runtime, start, WARM_UP, in_flight)
            began = perf_counter()
            took = await _drive(runtime, start, setup.n, in_flight)
            return perf_counter() - began, took

    return setup.loop.run(measure)


async def _drive(runtime: Runtime, start: Start, n: int, in_flight: int) -> list[float]:
    """Make `n` runs, some in flight; return the seconds from each one's spawning to its result."""
    numbers = iter(range(n))
    took: list[float] = []

    async def caller() -> None:
        for number in numbers:
            began = perf_counter()
            await runtime.run(start(number))
            took.append(perf_counter() - began)

    async with anyio.create_task_group() as tasks:
        for _ in range(in_flight):
            tasks.start_soon(caller)
    return took


CASES = {
    "floor": Case(floor, 20_000),
    "sequential": Case(sequential, 1000),
    "concurrent": Case(concurrent, 1000),
    "fanout": Case(fanout, 10_000),
    "fanout-fail": Case(fanout_fail, 10_000),
    "nested": Case(nested_maps, 1),
    "rollback-5ms": Case(rollback_5ms, 10_000),
    "recovery": Case(lambda setup: recovery(setup.url, setup.n, setup.loop.name), 1000),
    "recovery-map": Case(lambda setup: recovery_of_map(setup.url, setup.n, setup.loop.name), 10_000),
    "spawn": Case(spawn, 1000),
    "steps": Case(steps, 100_000),
}
