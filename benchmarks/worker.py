"""One of the two processes of the `recovery` case: the one that is killed, or the one that finishes.

Arguments: `spawn` or `finish`, storage URL, number of runs, loop, trace file, time of the restart.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import anyio

from benchmarks.loops import LOOPS, Loop
from benchmarks.reactors import TracedSteps, Tracer
from benchmarks.report import peak_mib
from rewound import RunNotFound, Runtime

LEASE = 2.0
STEPS = 5
SPAWNERS = 100


def main(arguments: Sequence[str]) -> None:
    """Do one part of the case."""
    part, url, n, loop, trace, since = arguments
    with Path(trace).open("ab", buffering=0) as file:
        if part == "spawn":
            Loop(_known(loop)).run(lambda: spawn_and_die(url, int(n), file))
            return
        spawned = [line.split()[1] for line in Path(trace).read_text().splitlines() if "spawned" in line]
        print(json.dumps(Loop(_known(loop)).run(lambda: finish(url, spawned, file, float(since)))))


def _known(loop: str) -> Any:
    assert loop in LOOPS, loop
    return loop


def _runtime(url: str, n: int, tracer: Tracer) -> Runtime:
    return Runtime(
        url,
        reactors=[TracedSteps],
        state={"tracer": tracer},
        lease=LEASE,
        retention=60,
        max_owners=max(n, 1000),
    )


async def spawn_and_die(url: str, n: int, file: BinaryIO) -> None:
    """Spawn all runs, then let their bodies go; half-way, one of them kills the process."""
    tracer = Tracer(file.fileno(), deadly=n * STEPS // 2)
    async with _runtime(url, n, tracer) as runtime:
        numbers = iter(range(n))

        async def spawner() -> None:
            for number in numbers:
                run = await runtime.spawn(TracedSteps(number=number))
                tracer.note("spawned", run.id)

        async with anyio.create_task_group() as tasks:
            for _ in range(SPAWNERS):
                tasks.start_soon(spawner)
        tracer.gate.set()
        await anyio.sleep_forever()


async def finish(url: str, spawned: Sequence[str], file: BinaryIO, since: float) -> dict[str, Any]:
    """Wait until every run that was acknowledged has ended; tell how long each took, and who was lost."""
    tracer = Tracer(file.fileno())
    tracer.gate.set()
    took: list[float] = []
    async with _runtime(url, len(spawned), tracer) as runtime, anyio.create_task_group() as tasks:

        async def await_end(run_id: str) -> None:
            try:
                await (await runtime.get(run_id, TracedSteps)).result()
            except RunNotFound:
                return
            took.append(time.time() - since)

        for run_id in spawned:
            tasks.start_soon(await_end, run_id)
    return {"took": took, "lost": len(spawned) - len(took), "peak_mib": peak_mib()}


if __name__ == "__main__":
    main(sys.argv[1:])
