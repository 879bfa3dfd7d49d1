"""The demo's other processes: started, watched, and never left behind."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

__all__ = ["DemoError", "check", "child", "first_line"]

GRACE: Final = 20.0  # seconds that a child may take to end when told to
START: Final = 30.0  # seconds that a child may take to say its first line
_TAIL: Final = 15  # lines of a dead child's output to show


class DemoError(Exception):
    """The demo itself went wrong, not an order; the message says where to look."""


@asynccontextmanager
async def child(module: str, argument: str, log: Path) -> AsyncGenerator[Process]:
    """Run a module in a Python of its own; end it on leaving.

    Args:
        module: run as `python -m module argument`. It ends when its standard input does, so it ends
            with this process, however this process ends.
        argument: its only one.
        log: where its standard error goes, appended.
    """
    with log.open("ab") as output:
        process = await anyio.open_process(
            [sys.executable, "-m", module, argument],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,  # a Ctrl-C is for the demo, which then ends its children in order
        )
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _end(process: Process) -> None:
    """Close the child's standard input and wait; kill it if it does not listen."""
    assert process.stdin is not None  # noqa: S101  `child` asked for it
    await process.stdin.aclose()
    with anyio.move_on_after(GRACE):
        await process.wait()
    if process.returncode is None:
        process.kill()
    await process.aclose()


async def first_line(process: Process, log: Path) -> str:
    """Return the first line that a child says.

    Raises:
        DemoError: it ended, or said nothing for 30 seconds.
    """
    said, output = b"", process.stdout
    assert output is not None  # noqa: S101  `child` asked for it
    with anyio.move_on_after(START), suppress(anyio.EndOfStream):
        while b"\n" not in said:
            said += await output.receive()
        return said.partition(b"\n")[0].decode()
    with anyio.move_on_after(1):  # its output may end before it does
        await process.wait()
    check(process, log)
    raise DemoError(f"a process of the demo did not start within {START:g} seconds; see {log}")


def check(process: Process, log: Path) -> None:
    """Raise `DemoError`, with the end of its output, if a child is gone."""
    if process.returncode is not None:
        tail = log.read_text("utf-8", errors="replace").splitlines()[-_TAIL:]
        raise DemoError("\n".join([f"a process of the demo ended by itself ({process.returncode}):", *tail]))
