"""A worker process for the fault tests: runs chains of five steps and notes each body in a ledger file.

python work.py STORE ledger --keys 0:200:3 --in-flight 7 --seconds 1 --lease 2

It spawns its keys (a key that was used is joined), then serves takeovers until SIGTERM, on which it
leaves its runtime in order.
"""

import argparse
import os
import signal
import time

import anyio

from rewound import Context, Reactor, Runtime, StorageError, step

ledger = -1


def note(what: str, ctx: Context) -> None:
    """Add one line to the ledger; one write of a file opened for appending is not torn by others."""
    line = f"{what} {ctx.run_id} {ctx.step} {os.getpid()} {time.monotonic():.6f}\n"
    os.write(ledger, line.encode())


class Chain(Reactor[int]):
    """Five steps, one after the other, that take `seconds` each."""

    number: int
    seconds: float
    fail: bool = False

    async def body(self, ctx: Context) -> int:
        """Note the beginning, take time, note the end."""
        note("begin", ctx)
        await anyio.sleep(self.seconds)
        note("end", ctx)
        return self.number

    @step
    async def one(self, ctx: Context) -> int:
        """Be the first."""
        return await self.body(ctx)

    @one.undo
    async def not_one(self, ctx: Context) -> None:
        """Be undone last."""
        note("undo", ctx)

    @step(after=one)
    async def two(self, ctx: Context) -> int:
        """Be the second."""
        return await self.body(ctx)

    @two.undo
    async def not_two(self, ctx: Context) -> None:
        """Be undone."""
        note("undo", ctx)

    @step(after=two)
    async def three(self, ctx: Context) -> int:
        """Be the third."""
        return await self.body(ctx)

    @step(after=three)
    async def four(self, ctx: Context) -> int:
        """Be the fourth."""
        return await self.body(ctx)

    @step(after=four)
    async def five(self, ctx: Context) -> int:
        """Be the last; fail if asked to."""
        value = await self.body(ctx)
        if self.fail:
            raise ValueError("asked to fail")
        return value


async def main(options: argparse.Namespace) -> None:
    """Work until SIGTERM."""
    runtime = Runtime(
        options.store,
        reactors=[Chain],
        lease=options.lease,
        grace=options.grace,
        concurrency=options.concurrency,
        max_recoveries=1000,  # the tests kill far more often than chance would
    )
    async with runtime, anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_sigterm, tasks.cancel_scope)
        print("ready", flush=True)  # noqa: T201 - its parent waits for this
        limit = anyio.CapacityLimiter(options.in_flight)
        for number in range(*map(int, options.keys.split(":"))):
            await limit.acquire_on_behalf_of(number)
            tasks.start_soon(follow, runtime, number, options, limit)
        await anyio.sleep_forever()


async def follow(
    runtime: Runtime, number: int, options: argparse.Namespace, limit: anyio.CapacityLimiter
) -> None:
    """See one run through to its end, whatever storage does meanwhile."""
    fail = bool(options.fail_every and number % options.fail_every == 0)
    chain = Chain(number=number, seconds=options.seconds, fail=fail)
    while True:
        try:
            run = await runtime.spawn(chain, key=str(number))
            await run.outcome()
        except StorageError:
            await anyio.sleep(0.1)
        else:
            break
    limit.release_on_behalf_of(number)


async def stop_on_sigterm(scope: anyio.CancelScope) -> None:
    """End the work; leaving the runtime is the orderly part."""
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("ledger")
    parser.add_argument("--keys", default="0:0:1")
    parser.add_argument("--in-flight", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--lease", type=float, default=2.0)
    parser.add_argument("--grace", type=float, default=5.0)
    parser.add_argument("--concurrency", type=int, default=1000)
    parser.add_argument("--fail-every", type=int, default=0)
    parser.add_argument("--loop", default="asyncio")
    return parser.parse_args()


if __name__ == "__main__":
    given = parse()
    ledger = os.open(given.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    anyio.run(main, given, backend=given.loop)
