"""Fixtures: a board that bodies act on; a runtime on every storage; runtimes on one memory and one clock."""

import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from rewound import Runtime
from tests.runtime.maps.plays import Board
from tests.runtime.nodes import Net


@pytest.fixture
def board() -> Board:
    """Return the board that the bodies of `runtime` act on."""
    return Board()


@pytest.fixture
async def runtime(url: str, board: Board, anyio_backend: Any) -> AsyncGenerator[Runtime, None]:
    """Return a runtime on a storage of each kind."""
    async with Runtime(url, state={"stage": board, "log": board.log}) as runtime:
        yield runtime
        for gate in board.gates.values():
            gate.set()


@pytest.fixture
async def net(anyio_backend: Any) -> AsyncGenerator[Net, None]:
    """Return a place for runtimes, whose stage is a board."""
    net = Net()
    net.stage = Board()
    yield net
    await net.close()


@pytest.fixture
def stage(net: Net) -> Board:
    """Return the board that the bodies of `net` act on."""
    assert isinstance(net.stage, Board)
    return net.stage


@pytest.fixture
def outcomes(caplog: pytest.LogCaptureFixture) -> "Outcomes":
    """Return what the log says of elements in rollbacks."""
    caplog.set_level(logging.DEBUG, "rewound.map")
    return Outcomes(caplog)


class Outcomes:
    """What the log says of maps."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def of(self, event: str) -> list[dict[str, Any]]:
        """List what was told of an event, such as `rollback.element`."""
        told = [getattr(record, "rewound", {}) for record in self._caplog.records]
        return [each for each in told if each.get("event") == f"rewound.map.{event}"]

    def by_index(self) -> dict[int, str]:
        """Give the outcome of each element; each has one."""
        told = [(each["index"], each["outcome"]) for each in self.of("rollback.element")]
        assert len(told) == len(dict(told)), "an element has two outcomes"
        return dict(told)
