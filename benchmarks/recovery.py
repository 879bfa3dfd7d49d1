"""How long a restart takes after `kill -9`, and what it costs: the runs lost, the bodies run twice."""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.report import Measured

__all__ = ["recovery", "recovery_of_map"]

STEPS = 5
KILLED = -9


def recovery(url: str, n: int, loop: str) -> Measured:
    """Run `n` 5-step runs in a process that is killed half-way; let a new one finish them.

    The percentiles are seconds from the restart to a run's end.
    """
    killed_at, twice, seconds, told = _killed_and_finished("runs", url, n, loop)
    more = {"runs_lost": told["lost"], "steps_before_kill": killed_at, "steps_run_twice": twice}
    return Measured("step", n * STEPS - killed_at + twice, seconds, told["took"], more, told["peak_mib"])


def recovery_of_map(url: str, n: int, loop: str) -> Measured:
    """Run one map of `n` elements in a process that is killed half-way; let a new one finish it."""
    killed_at, twice, seconds, told = _killed_and_finished("map", url, n, loop)
    more = {
        "elements_lost": n - sum(told["results"]),
        "elements_before_kill": killed_at,
        "elements_run_twice": twice,
    }
    return Measured("element", n - killed_at + twice, seconds, told["took"], more, told["peak_mib"])


def _killed_and_finished(kind: str, url: str, n: int, loop: str) -> tuple[int, int, float, dict[str, Any]]:
    """Return bodies begun before the kill, bodies begun twice, seconds since the restart, what was told."""
    with tempfile.TemporaryDirectory(prefix="rewound-benchmark-") as folder:
        trace = Path(folder) / "trace"
        common = (kind, url, str(n), loop, str(trace))
        if _work("spawn", *common, "0").returncode != KILLED:
            raise SystemExit("recovery: the first process was to be killed half-way, and was not")
        killed_at = _bodies(trace).total()
        began = time.time()
        second = _work("finish", *common, str(began))
        seconds = time.time() - began
        second.check_returncode()
        twice = sum(1 for times in _bodies(trace).values() if times > 1)
    return killed_at, twice, seconds, json.loads(second.stdout)


def _work(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "benchmarks.worker", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, check=False)  # noqa: S603  # our own words


def _bodies(trace: Path) -> Counter[tuple[str, str]]:
    """Count how often each body began."""
    lines = (line.split() for line in trace.read_text().splitlines())
    return Counter((words[1], words[2]) for words in lines if words[0] == "began")
