"""Scenario 5: workers are killed in the middle of a map, on its way forward and back."""

import time
from pathlib import Path

import pytest

from tests.faults.crew import Body, Crew, crew, wait_for_ends

pytestmark = [pytest.mark.faults]

COUNT, BATCH = 200, 10
SCRIPT = Path(__file__).with_name("map_work.py")
LEASE = ("--lease", "1")


def wait_for(workers: Crew, kind: str, key: int, ended: int, patience: float = 30) -> None:
    """Wait until so many elements of the newest run have come to the end of a kind of body."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = [body for body in bodies_of(workers, kind) if body.what == "end"]
        if len({(body.run, body.step) for body in found}) >= key * COUNT + ended:
            return
        time.sleep(0.01)  # another process works; there is nothing here to wait on
    raise AssertionError(f"the {kind} of {ended} elements did not end: {workers.log()}")


def bodies_of(workers: Crew, kind: str) -> list[Body]:
    """Read what the ledger has of elements: `forward` or `undo`."""
    if not workers.ledger.exists():
        return []
    return [body for body in workers.bodies() if body.step.startswith("pieces/") and body.step.endswith(kind)]


def check(workers: Crew, kinds: list[str], runs: int) -> None:
    """Nothing is lost, and only what was in flight ran again."""
    for kind in kinds:
        ended = {(body.run, body.step) for body in bodies_of(workers, kind) if body.what == "end"}
        assert len(ended) == runs * COUNT
    assert workers.unexcused(slack=0.2) == []
    # in flight at a kill: at most a batch, and as many again whose end was not recorded yet
    assert len(workers.repeated()) <= 2 * BATCH * runs


def kill_each(workers: Crew, store: str, kind: str, times: int, *options: str) -> list[str]:
    """Kill a worker half-way through each of so many runs, and start another; return how the runs ended."""
    for key in range(times):
        given = ("--key", str(key), *options)
        workers.start(0, *given)
        workers.ready(0)
        wait_for(workers, kind, key, COUNT // 2)
        workers.kill(0)
        workers.start(0, *given)
        workers.ready(0)
        wait_for_ends(store, key + 1, 60)
        workers.terminate(0)
    return [head.status for head in wait_for_ends(store, times, 1)]


def forward(store: str, folder: Path, times: int) -> None:
    """Kill on the way forward."""
    with crew(store, folder, *LEASE, script=SCRIPT) as workers:
        assert kill_each(workers, store, "forward", times) == ["completed"] * times
        check(workers, ["forward"], times)


def back(store: str, folder: Path, times: int) -> None:
    """Kill on the way back."""
    with crew(store, folder, *LEASE, script=SCRIPT) as workers:
        assert kill_each(workers, store, "undo", times, "--fail") == ["failed"] * times
        check(workers, ["forward", "undo"], times)


def test_killed_half_way_forward(store: str, tmp_path: Path) -> None:
    """M3: settled elements are not run again, elements in flight resume, all complete."""
    forward(store, tmp_path, 2)


def test_killed_half_way_back(store: str, tmp_path: Path) -> None:
    """R6, scenario 5: behind the last recorded undo; no recorded undo runs again; the run finishes."""
    back(store, tmp_path, 2)


@pytest.mark.slow
def test_killed_half_way_forward_again_and_again(store: str, tmp_path: Path) -> None:
    """The same, again and again."""
    forward(store, tmp_path, 6)


@pytest.mark.slow
def test_killed_half_way_back_again_and_again(store: str, tmp_path: Path) -> None:
    """The same, again and again."""
    back(store, tmp_path, 6)
