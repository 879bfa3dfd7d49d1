"""A body that blocks the event loop past the lease. The one suite that needs real time to pass."""

import inspect
import time
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest

from rewound import Context, Reactor, Runtime, step
from rewound.runtime.node.watchdog import innermost

pytestmark = pytest.mark.anyio

LEASE = 0.3


class Blocks(Reactor[str]):
    """A step that blocks the loop the first time it runs, and an undo that does."""

    @step
    async def a(self, ctx: Context) -> str:
        """Block."""
        ctx.state["log"].append("a")
        if ctx.state["block"] == "a":
            time.sleep(4 * LEASE)  # noqa: ASYNC251 - that is the point
        return "late" if ctx.state["block"] else "from another node"

    @a.undo
    async def undo_a(self, ctx: Context) -> None:
        """Block."""
        if ctx.state["block"] == "undo":
            time.sleep(LEASE)  # noqa: ASYNC251 - that is the point


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the events about blocking bodies."""
    events = [vars(record).get("rewound", {}) for record in caplog.records]
    return [event for event in events if event.get("event") == "rewound.step.blocking"]


async def test_a_step_that_blocks_the_loop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Architecture 4: it loses its claim, its late result is refused, and the log names it with its stack."""
    url = f"sqlite:///{tmp_path}/rewound.db"
    log: list[str] = []
    async with Runtime(
        url, reactors=[Blocks], state={"log": log, "block": "a"}, lease=LEASE, grace=0
    ) as runtime:
        other = Thread(target=anyio.run, args=(elsewhere, url, log))
        other.start()
        run = await runtime.spawn(Blocks())
        result = await run.result(timeout=20)
        await anyio.to_thread.run_sync(other.join)
    assert result == "from another node"
    assert log == ["a", "a"]
    blocking = told(caplog)[0]
    assert blocking["step"] == "Blocks.a"
    assert "time.sleep(4 * LEASE)" in blocking["stack"]


async def elsewhere(url: str, log: list[str]) -> None:
    """Be the node that takes the run over: on another event loop, which goes on meanwhile."""
    async with Runtime(url, reactors=[Blocks], state={"log": log, "block": ""}, lease=LEASE) as runtime:
        while not [each async for each in runtime.runs(status="completed")]:  # noqa: ASYNC110
            await anyio.sleep(LEASE / 10)


async def test_an_undo_that_blocks_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    """Architecture 4: the same for an undo."""
    state = {"log": list[str](), "block": "undo"}
    async with Runtime(reactors=[Blocks], state=state, lease=LEASE) as runtime:
        run = await runtime.spawn(Blocks())
        await run.result()
        await run.undo()
        await run.outcome(timeout=20)
    assert told(caplog)[0]["step"] == "Blocks.a"


async def test_a_blocked_loop_without_a_step(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever else blocks the loop is logged, too: without a step, but with its stack."""
    async with Runtime(reactors=[Blocks], lease=LEASE):
        await anyio.lowlevel.checkpoint()
        time.sleep(LEASE)  # noqa: ASYNC251 - that is the point
    (blocking,) = told(caplog)
    assert "step" not in blocking
    assert "time.sleep(LEASE)" in blocking["stack"]


def test_a_short_stack_is_told_in_full() -> None:
    """A stack that a log event has room for is not cut."""
    stacks: list[str] = []
    thread = Thread(target=lambda: stacks.append(innermost(inspect.currentframe())))
    thread.start()
    thread.join()
    assert "in run" in stacks[0]
    assert stacks[0].count("File") > 1
