"""Clients of a real web service go away while it works for them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.crew import heads_by_status, wait_for_ends
from tests.servers import free_port, until

pytestmark = [pytest.mark.faults]


def listens(port: int) -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_client_that_disconnects(tmp_path: Path) -> None:
    """Twenty clients send a request to a real uvicorn and hang up: every run they spawned completes."""
    store, port = f"sqlite:///{tmp_path}/runs.db", free_port()
    command = [sys.executable, "-m", "uvicorn", "tests.faults.service:app", "--port", str(port)]
    environment = {**os.environ, "REWOUND_STORE": store}
    with (tmp_path / "log").open("wb") as log:
        service = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            until(lambda: listens(port), "uvicorn listens")
            for number in range(20):
                with socket.create_connection(("127.0.0.1", port)) as client:
                    client.sendall(
                        f"POST /orders/{number} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode()
                    )
                    client.recv(1) if number % 5 == 0 else None  # some see the answer begin
            heads = wait_for_ends(store, 20, 20)
            assert heads_by_status(heads) == {"completed": 20}
        finally:
            service.terminate()
            service.wait(20)
    assert "Traceback" not in (tmp_path / "log").read_text()
