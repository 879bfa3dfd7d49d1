"""The host task: it outlives whoever started it."""

import asyncio
import contextvars
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from rewound.actors import HostTask, Supervisor
from tests.actors.parts import Adder

pytestmark = pytest.mark.anyio

place = contextvars.ContextVar("place", default="nowhere")


class Service:
    """Something with a task group inside, which must be left in the task that entered it."""

    def __init__(self) -> None:
        self.please_stop = anyio.Event()
        self.log: list[str] = []

    async def serve(self, status: TaskStatus[Any]) -> None:
        """Run until told to stop."""
        async with Supervisor() as supervisor:
            status.started(supervisor)
            await self.please_stop.wait()
            self.log.append(place.get())


async def test_it_is_started_and_stopped_in_different_tasks() -> None:
    """What a task group of one task started serves until another task stops it."""
    service, host = Service(), HostTask()
    supervisors: list[Supervisor] = []

    async def start() -> None:
        place.set("in the starter")
        supervisors.append(await host.start(service.serve))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
    assert await supervisors[0].start(Adder()).ask(1) == 1
    service.please_stop.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.stop)
        tasks.start_soon(host.stop)
    assert service.log == ["in the starter"]


@pytest.fixture
async def served() -> AsyncIterator[Supervisor]:
    """Hold a supervisor across a test, as fixtures of applications do."""
    service, host = Service(), HostTask()
    yield await host.start(service.serve)
    service.please_stop.set()
    await host.stop()


async def test_it_lives_in_a_fixture(served: Supervisor) -> None:
    """A fixture may hold what needs one task to enter and leave."""
    assert await served.start(Adder()).ask(2) == 2


async def test_an_error_before_the_start_is_raised_by_start() -> None:
    """Whoever starts it learns why it did not start."""

    async def fail(status: TaskStatus[Any]) -> None:
        raise ValueError("cannot start")

    with pytest.raises(ValueError, match="cannot start"):
        await HostTask().start(fail)


async def test_a_function_that_does_not_report_is_an_error() -> None:
    """Returning without `started` is told to the starter by name."""

    async def forget(status: TaskStatus[Any]) -> None:
        pass

    with pytest.raises(RuntimeError, match=r"forget.* ended without a call of started\(\)"):
        await HostTask().start(forget)


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt and SystemExit, which pytest would take for its own."""


@pytest.mark.parametrize("kind", [ValueError, Interrupt])
async def test_a_later_error_is_raised_by_stop(kind: type[BaseException]) -> None:
    """It is kept for `stop`, and never becomes an internal error of trio."""

    async def fail(status: TaskStatus[Any]) -> None:
        status.started()
        raise kind("while serving")

    host = HostTask()
    assert await host.start(fail) is None
    for _ in range(2):
        with pytest.raises(kind, match="while serving"):
            await host.stop()


async def test_cancel_ends_the_function() -> None:
    """A function without means of its own to stop is cancelled, which is no error."""

    async def serve(status: TaskStatus[Any]) -> None:
        status.started()
        await anyio.sleep_forever()

    host = HostTask()
    await host.start(serve)
    host.cancel()
    await host.stop()


async def test_a_cancelled_start_takes_the_function_along() -> None:
    """If the starter gives up, the function is cancelled, and has ended when the cancellation goes on."""
    log: list[str] = []

    async def never_ready(status: TaskStatus[Any]) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            log.append("ended")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(HostTask().start, never_ready)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert log == ["ended"]


async def test_a_cancellation_that_the_function_raised_itself_is_an_error() -> None:
    """Nobody cancelled it: the one who stops it learns of the bug."""

    async def stray(status: TaskStatus[Any]) -> None:
        status.started()
        raise await cancellation()

    async def cancellation() -> BaseException:
        caught: list[BaseException] = []
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class() as error:
                caught.append(error)
                raise
        return caught[0]

    host = HostTask()
    await host.start(stray)
    with pytest.raises(Exception, match="no cancel scope"):
        await host.stop()


async def test_a_host_task_is_used_once_and_in_order() -> None:
    """A second start, and a stop before the first, are refused."""
    service, host = Service(), HostTask()
    with pytest.raises(RuntimeError, match="nothing was started"):
        await host.stop()
    await host.start(service.serve)
    with pytest.raises(RuntimeError, match="make another HostTask"):
        await host.start(service.serve)
    service.please_stop.set()
    await host.stop()


class TestProgramEnd:
    """A program that ends without `stop`; these tests run event loops of their own."""

    @pytest.fixture(params=["asyncio", "trio"])
    def backend(self, request: pytest.FixtureRequest) -> str:
        """Name the event loop to run."""
        name: str = request.param
        return name

    def test_it_ends_quietly_with_the_program(self, backend: str) -> None:
        """The function is cancelled when the main task ends, and nothing else is raised."""
        log: list[str] = []

        async def serve(status: TaskStatus[Any]) -> None:
            status.started()
            try:
                await anyio.sleep_forever()
            finally:
                log.append("cleaned up")

        async def main() -> str:
            await HostTask().start(serve)
            return "done"

        assert anyio.run(main, backend=backend) == "done"
        assert log == ["cleaned up"]

    def test_what_clean_up_raises_then_is_no_internal_error(self, backend: str) -> None:
        """An error while the loop is being closed has nobody left to be raised in."""

        async def serve(status: TaskStatus[Any]) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fail_when_cancelled)
                await anyio.wait_all_tasks_blocked()
                status.started()
                await anyio.sleep_forever()

        async def fail_when_cancelled() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError("in clean-up")

        async def main() -> str:
            await HostTask().start(serve)
            return "done"

        assert anyio.run(main, backend=backend) == "done"


async def test_a_natively_cancelled_host_ends(anyio_backend_name: str) -> None:
    """`Task.cancel` on the host's task is a real cancellation: `stop` returns."""
    if anyio_backend_name == "trio":
        pytest.skip("trio tasks cannot be cancelled singly")

    async def serve(status: TaskStatus[Any]) -> None:
        status.started(asyncio.current_task())
        await anyio.sleep_forever()

    host = HostTask()
    task = await host.start(serve)
    task.cancel()
    await host.stop()
