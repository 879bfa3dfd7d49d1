"""One of the two processes of the `recovery` cases: the one that is killed, or the one that finishes.

Arguments: `spawn` or `finish`, `runs` or `map`, storage URL, number of runs or elements, loop, trace file,
time of the restart.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import anyio
from msgspec import Struct

from benchmarks.loops import LOOPS, Loop
from benchmarks.map_reactors import Resumable
from benchmarks.reactors import TracedSteps, Tracer
from benchmarks.report import peak_mib
from rewound import Reactor, RunNotFound, Runtime

LEASE = 2.0
STEPS = 5
SPAWNERS = 100


class Kind(Struct, frozen=True):
    """What is recovered: so many runs, or one run with so many elements.

    Args:
        reactor: what runs.
        spawned: the runs.
        bodies: how many bodies that makes.
    """

    reactor: type[Reactor[Any]]
    spawned: Sequence[Reactor[Any]]
    bodies: int


def kind_of(name: str, n: int) -> Kind:
    """Return what to recover."""
    if name == "map":
        return Kind(Resumable, [Resumable(n=n)], n)
    return Kind(TracedSteps, [TracedSteps(number=number) for number in range(n)], n * STEPS)


def main(arguments: Sequence[str]) -> None:
    """Do one part of the case."""
    part, name, url, n, loop, trace, since = arguments
    kind = kind_of(name, int(n))
    with Path(trace).open("ab", buffering=0) as file:
        if part == "spawn":
            Loop(_known(loop)).run(lambda: spawn_and_die(url, kind, file))
            return
        spawned = [line.split()[1] for line in Path(trace).read_text().splitlines() if "spawned" in line]
        print(json.dumps(Loop(_known(loop)).run(lambda: finish(url, kind, spawned, file, float(since)))))


def _known(loop: str) -> Any:
    assert loop in LOOPS, loop
    return loop


def _runtime(url: str, kind: Kind, tracer: Tracer) -> Runtime:
    return Runtime(
        url,
        reactors=[kind.reactor],
        state={"tracer": tracer},
        lease=LEASE,
        retention=60,
        max_owners=max(len(kind.spawned), 1000),
    )


async def spawn_and_die(url: str, kind: Kind, file: BinaryIO) -> None:
    """Spawn all runs, then let their bodies go; half-way, one of them kills the process."""
    tracer = Tracer(file.fileno(), deadly=kind.bodies // 2)
    async with _runtime(url, kind, tracer) as runtime:
        waiting = iter(kind.spawned)

        async def spawner() -> None:
            for reactor in waiting:
                run = await runtime.spawn(reactor)
                tracer.note("spawned", run.id)

        async with anyio.create_task_group() as tasks:
            for _ in range(SPAWNERS):
                tasks.start_soon(spawner)
        tracer.gate.set()
        await anyio.sleep_forever()


async def finish(
    url: str, kind: Kind, spawned: Sequence[str], file: BinaryIO, since: float
) -> dict[str, Any]:
    """Wait until every run that was acknowledged has ended; tell how long each took, and who was lost."""
    tracer = Tracer(file.fileno())
    tracer.gate.set()
    took: list[float] = []
    results: list[Any] = []
    async with _runtime(url, kind, tracer) as runtime, anyio.create_task_group() as tasks:

        async def await_end(run_id: str) -> None:
            try:
                results.append(await (await runtime.get(run_id, kind.reactor)).result())
            except RunNotFound:
                return
            took.append(time.time() - since)

        for run_id in spawned:
            tasks.start_soon(await_end, run_id)
    lost = len(spawned) - len(took)
    return {"took": took, "lost": lost, "results": results, "peak_mib": peak_mib()}


if __name__ == "__main__":
    main(sys.argv[1:])
