"""SIGTERM under load: runs are handed over, none waits, none is lost."""

import itertools
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.faults.crew import Crew, crew, heads_by_status, heads_of, wait_for_ends

pytestmark = [pytest.mark.faults]

LEASE = 2.0
SECONDS = 0.2


def longest_wait(workers: Crew) -> float:
    """Return the longest time that a run spent with no body running, between its first and its last."""
    by_run: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for body in workers.bodies():
        by_run[body.run].append((body.at, body.what))
    waits = [0.0]
    for notes in by_run.values():
        notes.sort()
        waits += [later - at for (at, what), (later, _) in itertools.pairwise(notes) if what == "end"]
    return max(waits)


def hand_over(store: str, folder: Path, times: int) -> None:
    """Replace the worker again and again, each by one that has joined before it is told to stop."""
    options = ("--seconds", str(SECONDS), "--lease", str(LEASE), "--in-flight", "20")
    with crew(store, folder, *options) as workers:
        runs = 40 + 40 * times
        workers.start(0, "--keys", "0:40:1")
        workers.ready(0)
        for turn in range(1, times + 1):
            first = 40 * turn
            workers.start(turn, "--keys", f"{first}:{first + 40}:1")
            workers.ready(turn)
            time.sleep(SECONDS)  # so that it has work of its own
            workers.terminate(turn - 1)
        # Keys that a stopped worker had not spawned yet are spawned by the last one.
        workers.start(times + 1, "--keys", f"0:{runs}:1")
        heads = wait_for_ends(store, runs, 180)
        assert heads_by_status(heads) == {"completed": runs}
        assert longest_wait(workers) < LEASE
        assert workers.repeated() == {}, "a body that was let to finish began again"
        assert [head for head in heads_of(store) if head.node is not None] == []


def test_two_replacements(store: str, tmp_path: Path) -> None:
    """Two replacements under load: spawned equals ended, no run waits longer than a lease for an owner."""
    hand_over(store, tmp_path, 2)


@pytest.mark.slow
def test_fifty_replacements(store: str, tmp_path: Path) -> None:
    """50 replacements under load: spawned equals ended, no run waits longer than a lease for an owner."""
    hand_over(store, tmp_path, 50)
