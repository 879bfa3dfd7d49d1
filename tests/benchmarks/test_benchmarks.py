"""The benchmarks run, on every store and loop, and print what they promise."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report import percentile

COMMON = {
    "case",
    "n",
    "unit",
    "seconds",
    "per_second",
    "p50_ms",
    "p99_ms",
    "peak_mib",
    "store",
    "loop",
    "versions",
}
MORE = {
    "floor": {"callers", "grouped_per_second"},
    "sequential": {"floor_p50_ms", "p50_ratio"},
    "concurrent": {"floor_per_second", "ratio"},
    "fanout": {
        "bytes_per_element",
        "connections",
        "cpu_seconds",
        "parent_bytes",
        "writes",
        "written_per_element",
    },
    "fanout-fail": {"cpu_ratio", "forward_seconds", "rollback_seconds", "ratio"},
    "nested": {"bytes_4_deep", "bytes_8_deep", "ratio"},
    "rollback-5ms": {"ten_seconds", "one_seconds", "ratio"},
    "recovery": {"runs_lost", "steps_before_kill", "steps_run_twice"},
    "recovery-map": {"elements_lost", "elements_before_kill", "elements_run_twice"},
    "spawn": set[str](),
    "steps": {"peak_20_mib", "peak_100_mib", "growth"},
}


def measure(*arguments: str) -> list[dict[str, Any]]:
    """Run the command line, small, and return its lines."""
    command = [sys.executable, "-m", "benchmarks", *arguments, "--n", "10"]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("store", ["sqlite://auto", "redis://auto"])
def test_cases_print_a_line_each(store: str) -> None:
    """Each case prints one line of JSON with the common fields and its own, and measured something."""
    lines = measure("--store", store, *(word for case in MORE for word in ("--case", case)))
    assert [line["case"] for line in lines] == list(MORE)
    for line in lines:
        assert set(line) == COMMON | MORE[line["case"]]
        assert line["per_second"] > 0
        assert line["p50_ms"] > 0
        assert line["p99_ms"] >= line["p50_ms"]
        assert line["peak_mib"] > 1


@pytest.mark.parametrize("loop", ["uvloop", "trio"])
@pytest.mark.parametrize("store", ["sqlite://auto", "redis://auto"])
def test_loops(store: str, loop: str) -> None:
    """The ratio to the floor is measured on every event loop."""
    [line] = measure("--case", "concurrent", "--store", store, "--loop", loop)
    assert line["loop"] == loop
    assert line["ratio"] > 0


def test_recovery_loses_nothing() -> None:
    """A process killed half-way loses no run that it had acknowledged."""
    [line] = measure("--case", "recovery")
    assert line["runs_lost"] == 0
    assert line["steps_before_kill"] == 25


def test_recovered_map_loses_nothing() -> None:
    """A map killed half-way is finished by the next process, each of its elements once."""
    [line] = measure("--case", "recovery-map")
    assert line["elements_lost"] == 0
    assert line["elements_before_kill"] == 5


def test_map_is_told_apart_from_its_run() -> None:
    """What the elements of a map take up is counted apart from its run; so are connections."""
    [line] = measure("--case", "fanout", "--store", "redis://auto")
    assert 0 < line["parent_bytes"] < 1000
    assert line["bytes_per_element"] > line["written_per_element"] > 64
    assert 1 < line["connections"] < 10


def test_maps_in_maps_grow_with_their_elements() -> None:
    """An element 8 maps deep costs about what one 4 deep does."""
    [line] = measure("--case", "nested", "--store", "memory://")
    assert 0.5 < line["ratio"] < 1.1


def test_memory_has_no_floor() -> None:
    """On memory there is nothing to compare with: the ratios are null."""
    sequential, concurrent = measure("--case", "sequential", "--case", "concurrent", "--store", "memory://")
    assert sequential["p50_ratio"] is None
    assert concurrent["ratio"] is None


def test_percentiles() -> None:
    """A percentile is one of the values; of no values there is none."""
    values = [float(number) for number in range(100, 0, -1)]
    assert percentile(values, 0.5) == 51.0
    assert percentile(values, 0.99) == 100.0
    assert percentile([], 0.5) is None
