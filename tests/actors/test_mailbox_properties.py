"""The mailbox against a model, and under random cancellation."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewound.actors import Mailbox
from rewound.actors.virtual import settled

pytestmark = pytest.mark.anyio

CAPACITY = 2

some = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

operations = st.lists(
    st.one_of(
        st.just(("put",)),
        st.just(("put_nowait",)),
        st.tuples(st.just("signal"), st.sampled_from("ab")),
        st.tuples(st.just("drain"), st.sampled_from([None, 1, 2])),
        st.tuples(st.just("cancel"), st.integers(0, 3)),
    ),
    max_size=25,
)


@dataclass
class Model:
    """What a mailbox should hold: mail, signals by key, and senders in line."""

    mail: deque[int] = field(default_factory=deque[int])
    signals: dict[str, int] = field(default_factory=dict[str, int])
    line: list[int] = field(default_factory=list[int])

    def admit(self) -> None:
        """Let senders in while there is room."""
        while self.line and len(self.mail) < CAPACITY:
            self.mail.append(self.line.pop(0))

    def contents(self) -> list[int]:
        """Return the messages in the order of their delivery."""
        return [*self.signals.values(), *self.mail]

    def drain(self, limit: int | None) -> list[int]:
        """Take messages and let senders in."""
        taken = self.contents()[:limit]
        self.signals = {key: value for key, value in self.signals.items() if value not in taken}
        self.mail = deque(value for value in self.mail if value not in taken)
        self.admit()
        return taken


@dataclass
class Driver:
    """Applies each operation to a mailbox and to the model."""

    tasks: TaskGroup
    box: Mailbox[int] = field(default_factory=lambda: Mailbox[int](CAPACITY))
    model: Model = field(default_factory=Model)
    scopes: dict[int, anyio.CancelScope] = field(default_factory=dict[int, anyio.CancelScope])
    serial: int = 0

    async def apply(self, name: str, *arguments: Any) -> None:
        """Do an operation on both and compare them."""
        self.serial += 1
        await getattr(self, f"do_{name}")(*arguments)
        await settled()
        assert list(self.box) == self.model.contents()

    async def do_put(self) -> None:
        """Start a sender, who may have to wait."""
        self.scopes[self.serial] = scope = anyio.CancelScope()

        async def put(message: int) -> None:
            with scope:
                await self.box.put(message)

        self.tasks.start_soon(put, self.serial)
        self.model.line.append(self.serial)
        self.model.admit()

    async def do_put_nowait(self) -> None:
        """Send without waiting; only a full mailbox refuses."""
        try:
            self.box.put_nowait(self.serial)
        except anyio.WouldBlock:
            assert len(self.model.mail) == CAPACITY
        else:
            self.model.mail.append(self.serial)

    async def do_signal(self, key: str) -> None:
        """Signal, which may replace an unread signal."""
        self.box.signal(key, self.serial)
        self.model.signals[key] = self.serial

    async def do_drain(self, limit: int | None) -> None:
        """Read what there is."""
        if self.model.contents():
            taken = await self.box.drain(limit)
            assert taken == self.model.drain(limit)

    async def do_cancel(self, place: int) -> None:
        """Cancel a sender in the line."""
        if place < len(self.model.line):
            self.scopes[self.model.line.pop(place)].cancel()


@some
@given(steps=operations)
async def test_it_behaves_as_its_model(steps: list[tuple[Any, ...]]) -> None:
    """Order, capacity, coalescing and the line of senders are the model's after every operation."""
    async with anyio.create_task_group() as tasks:
        driver = Driver(tasks)
        for step in steps:
            await driver.apply(*step)
        tasks.cancel_scope.cancel()


@some
@given(fates=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=20))
async def test_what_was_put_is_delivered_once(fates: list[tuple[int, bool]]) -> None:
    """Whatever the timing: delivered are exactly the messages whose put returned, each once."""
    box = Mailbox[int](CAPACITY)
    accepted: list[int] = []
    delivered: list[int] = []

    async def send(message: int, scope: anyio.CancelScope) -> None:
        with scope:
            await box.put(message)
            accepted.append(message)

    async def read() -> None:
        while taken := await box.drain():
            delivered.extend(taken)

    async with anyio.create_task_group() as senders:
        for message, (pause, cancel) in enumerate(fates):
            scope = anyio.CancelScope()
            senders.start_soon(send, message, scope)
            for _ in range(pause):
                await checkpoint()
            if pause == 3:
                delivered.extend(await box.drain() if len(box) else [])
            if cancel:
                scope.cancel()
        async with anyio.create_task_group() as reader:
            reader.start_soon(read)
            await settled()
            reader.cancel_scope.cancel()
    assert sorted(delivered) == sorted(accepted)
    assert len(box) == 0
