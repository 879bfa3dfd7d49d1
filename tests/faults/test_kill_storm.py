"""Worker processes are killed while they work; nothing is lost and nothing recorded is done again."""

import random
import signal
import time
from pathlib import Path

import pytest

from tests.faults.crew import Crew, crew, heads_by_status, heads_of, wait_for_ends

pytestmark = [pytest.mark.faults]

PLACES = 3


def share(place: int, runs: int) -> tuple[str, str]:
    """Return the option that gives a place its share of the keys."""
    return "--keys", f"{place}:{runs}:{PLACES}"


def storm(workers: Crew, runs: int, kills: int, every: float) -> None:
    """Kill a worker at random again and again, and start it anew at once."""
    for place in range(PLACES):
        workers.start(place, *share(place, runs))
    for place in range(PLACES):
        workers.ready(place)
    for _ in range(kills):
        time.sleep(every)  # the fault comes at any moment of real work in other processes
        place = random.randrange(PLACES)  # noqa: S311 - any worker will do
        workers.kill(place)
        workers.start(place, *share(place, runs))


def check(workers: Crew, store: str, runs: int) -> None:
    """Check what must hold after any storm."""
    heads = wait_for_ends(store, runs, 120)
    assert heads_by_status(heads) == {"completed": runs}
    assert workers.unexcused() == []
    steps = {(body.run, body.step) for body in workers.bodies() if body.what == "end"}
    assert len(steps) == runs * 5
    assert [head for head in heads_of(store) if head.node is not None] == []


def test_two_kills(store: str, tmp_path: Path) -> None:
    """Two kills among three workers with 30 runs under way: all complete, no recorded step is repeated."""
    with crew(store, tmp_path, "--seconds", "0.2", "--lease", "1", "--in-flight", "5") as workers:
        storm(workers, 30, kills=2, every=0.8)
        check(workers, store, 30)


@pytest.mark.slow
def test_a_kill_every_second(store: str, tmp_path: Path) -> None:
    """200 runs of 5 steps of 1 s, about 20 in flight, lease 2 s, a kill every second for 20 s."""
    with crew(store, tmp_path, "--seconds", "1", "--lease", "2", "--in-flight", "7") as workers:
        storm(workers, 200, kills=20, every=1.0)
        check(workers, store, 200)


def test_a_process_that_is_stopped_for_three_leases(store: str, tmp_path: Path) -> None:
    """Its runs are taken over; continued, its late writes are refused and each run has one outcome."""
    with crew(store, tmp_path, "--seconds", "0.3", "--lease", "1", "--in-flight", "10") as workers:
        workers.start(0, "--keys", "0:10:1")
        workers.ready(0)
        workers.start(1)
        workers.ready(1)
        time.sleep(0.6)  # so that it is stopped in the midst of its steps
        workers.send(0, signal.SIGSTOP)
        stopped = time.monotonic()
        pid = workers.workers[0].pid
        heads = wait_for_ends(store, 10, 30)
        time.sleep(max(0.0, stopped + 3 - time.monotonic()))  # three leases
        before = {head.run_id: (head.length, head.epoch) for head in heads}
        workers.send(0, signal.SIGCONT)
        continued = time.monotonic()
        workers.terminate(0)
        heads = heads_of(store)
        assert heads_by_status(heads) == {"completed": 10}
        assert {head.run_id: (head.length, head.epoch) for head in heads} == before
        late = [body for body in workers.bodies() if body.pid == pid and body.at > continued]
        assert {body.what for body in late} <= {"end"}, "a step began on runs that had another owner"
