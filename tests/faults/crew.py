"""Worker processes that a test starts, kills and questions, and what they noted."""

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import anyio

from rewound.storage import Head, Query, Storage, open_storage

__all__ = ["Body", "Crew", "crew", "heads_of", "wait_for_ends"]

WORK = Path(__file__).with_name("work.py")


class Body(NamedTuple):
    """One line of the ledger: a body that began or ended, or an undo."""

    what: str
    run: str
    step: str
    pid: int
    at: float


class Crew:
    """Workers on one store.

    Args:
        store: its URL.
        folder: for the ledger and the workers' output.
        options: given to every worker.
        script: what they run.
    """

    def __init__(self, store: str, folder: Path, *options: str, script: Path = WORK) -> None:
        self.script = script
        self.store = store
        self.folder = folder
        self.ledger = folder / "ledger.txt"
        self.options = options
        self.workers: dict[int, subprocess.Popen[bytes]] = {}
        self.killed: dict[int, float] = {}
        self._output = (folder / "workers.log").open("ab")

    def start(self, place: int, *options: str) -> subprocess.Popen[bytes]:
        """Start the worker of a place (its share of the keys); does not wait for it."""
        command = [sys.executable, str(self.script), self.store, str(self.ledger), *self.options, *options]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._output)
        self.workers[place] = worker
        return worker

    def ready(self, place: int) -> None:
        """Wait until a worker has joined."""
        stdout = self.workers[place].stdout
        assert stdout is not None
        assert stdout.readline() == b"ready\n", self.log()

    def kill(self, place: int) -> None:
        """Kill a worker with SIGKILL."""
        worker = self.workers[place]
        worker.kill()
        worker.wait()
        self.killed[worker.pid] = time.monotonic()
        self._close(worker)

    def terminate(self, place: int, patience: float = 30.0) -> None:
        """Stop a worker with SIGTERM and see that it leaves in order."""
        worker = self.workers.pop(place)
        worker.terminate()
        assert worker.wait(patience) == 0, self.log()
        self._close(worker)

    def send(self, place: int, number: signal.Signals) -> None:
        """Send a signal to a worker."""
        self.workers[place].send_signal(number)

    def close(self) -> None:
        """Kill whoever is left."""
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.kill()
                worker.wait()
            self._close(worker)
        self._output.close()

    def bodies(self) -> list[Body]:
        """Read the ledger."""
        lines = self.ledger.read_text().splitlines()
        fields = (line.split() for line in lines)
        return [Body(what, run, step, int(pid), float(at)) for what, run, step, pid, at in fields]

    def log(self) -> str:
        """Return the end of what the workers wrote to standard error."""
        return (self.folder / "workers.log").read_text()[-8000:]

    def repeated(self) -> dict[tuple[str, str], list[Body]]:
        """Return the step bodies that began more than once."""
        begun: dict[tuple[str, str], list[Body]] = defaultdict(list)
        for body in self.bodies():
            if body.what == "begin":
                begun[body.run, body.step].append(body)
        return {which: bodies for which, bodies in begun.items() if len(bodies) > 1}

    def unexcused(self, slack: float = 0.5) -> list[list[Body]]:
        """Return the repeated bodies whose earlier attempt was not in flight when its process was killed.

        In flight means: not recorded. A body that had just returned, up to `slack` seconds before the kill,
        may not have been.
        """
        ended = {(body.run, body.step, body.pid): body.at for body in self.bodies() if body.what == "end"}

        def excused(body: Body) -> bool:
            killed = self.killed.get(body.pid)
            end = ended.get((body.run, body.step, body.pid), float("inf"))
            return killed is not None and end > killed - slack

        return [bodies for bodies in self.repeated().values() if not all(map(excused, bodies[:-1]))]

    @staticmethod
    def _close(worker: subprocess.Popen[bytes]) -> None:
        if worker.stdout is not None:
            worker.stdout.close()


@contextmanager
def crew(store: str, folder: Path, *options: str, script: Path = WORK) -> Generator[Crew]:
    """Have workers for the length of a block."""
    workers = Crew(store, folder, *options, script=script)
    # A test that is stopped must not leave workers behind.
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield workers
    finally:
        signal.signal(signal.SIGTERM, before)
        workers.close()


def _exit(number: int, _frame: FrameType | None) -> Any:
    raise SystemExit(number)


async def _heads(storage: Storage) -> list[Head]:
    heads: list[Head] = []
    cursor: str | None = None
    while True:
        page = await storage.runs(Query(), cursor, 500)
        heads += page.heads
        cursor = page.cursor
        if cursor is None:
            return heads


def heads_of(store: str) -> list[Head]:
    """Read the heads of all runs."""

    async def read() -> list[Head]:
        storage = open_storage(store)
        await storage.open()
        try:
            return await _heads(storage)
        finally:
            await storage.close()

    return anyio.run(read)


def wait_for_ends(store: str, runs: int, patience: float) -> list[Head]:
    """Wait until so many runs have ended; return their heads."""

    async def wait() -> list[Head]:
        storage = open_storage(store)
        await storage.open()
        try:
            while True:
                heads = await _heads(storage)
                if sum(head.terminal for head in heads) >= runs:
                    return heads
                await anyio.sleep(0.25)  # another process ends them; there is nothing here to wait on
        finally:
            await storage.close()

    async def bounded() -> list[Head]:
        with anyio.move_on_after(patience):
            return await wait()
        heads = heads_by_status(await _once(store))
        raise AssertionError(f"not all of {runs} runs ended within {patience} s: {heads}")

    return anyio.run(bounded)


async def _once(store: str) -> list[Head]:
    storage = open_storage(store)
    await storage.open()
    try:
        return await _heads(storage)
    finally:
        await storage.close()


def heads_by_status(heads: list[Head]) -> dict[str, int]:
    """Count runs by status."""
    counts: dict[str, int] = defaultdict(int)
    for head in heads:
        counts[head.status] += 1
    return dict(counts)
