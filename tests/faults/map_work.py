"""A worker process for the kill tests of maps: runs one map and notes each body and undo in a ledger file.

python map_work.py STORE LEDGER --key 1 --count 200 --seconds 0.05 --fail

It spawns the run (or joins it), then serves takeovers until SIGTERM.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import anyio

from rewound import Context, Reactor, Runtime, step
from rewound.runtime.declare import element, fan_out

sys.path.insert(0, str(Path(__file__).parents[2]))  # this is run as a program
from tests.faults.work import stop_on_sigterm

BATCH = 10


async def act(ctx: Context, seconds: float) -> None:
    """Note the beginning, take time, note the end; under the place of what runs, which is in its key."""
    note("begin", ctx)
    await anyio.sleep(seconds)
    note("end", ctx)


def note(what: str, ctx: Context) -> None:
    """Add one line to the ledger, as `work.note` does."""
    place = ctx.idempotency_key.removeprefix(f"{ctx.run_id}:")
    line = f"{what} {ctx.run_id} {place} {os.getpid()} {time.monotonic():.6f}\n"
    os.write(ledger, line.encode())


class Piece(Reactor[int]):
    """An element: one step and its undo."""

    number: int
    seconds: float

    @step
    async def work(self, ctx: Context) -> int:
        """Work."""
        await act(ctx, self.seconds)
        return self.number

    @work.undo
    async def unwork(self, ctx: Context) -> None:
        """Take it back."""
        await act(ctx, self.seconds)


class Whole(Reactor[None]):
    """A step, a map, and a step that fails if asked to."""

    count: int
    seconds: float
    fail: bool

    @step
    async def rows(self, ctx: Context) -> list[int]:
        """List the numbers."""
        await act(ctx, 0)
        return list(range(self.count))

    @rows.undo
    async def unrows(self, ctx: Context) -> None:
        """Take it back."""
        await act(ctx, 0)

    pieces = fan_out(Piece, over=rows, batch_size=BATCH, bind={"number": element(), "seconds": "seconds"})

    @step(after=pieces)
    async def last(self, ctx: Context) -> None:
        """Fail if asked to."""
        if self.fail:
            raise ValueError("asked to fail")


async def main(options: argparse.Namespace) -> None:
    """Work until SIGTERM."""
    runtime = Runtime(options.store, reactors=[Whole], lease=options.lease, grace=5, max_recoveries=1000)
    async with runtime, anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_sigterm, tasks.cancel_scope)
        print("ready", flush=True)  # noqa: T201 - its parent waits for this
        whole = Whole(count=options.count, seconds=options.seconds, fail=options.fail)
        await runtime.spawn(whole, key=options.key)
        await anyio.sleep_forever()


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("ledger")
    parser.add_argument("--key", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--lease", type=float, default=1.0)
    parser.add_argument("--fail", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    given = parse()
    ledger = os.open(given.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    anyio.run(main, given)
