"""Living inside someone's program: lifespans, requests, tasks that come and go."""

import asyncio
import contextvars
import logging
import signal
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiohttp import web
from anyio.lowlevel import checkpoint
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from rewound import Context, Reactor, Runtime, step
from tests.runtime.nodes import Net, Stage
from tests.runtime.plays import Chain, Solo

pytestmark = pytest.mark.anyio

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")


class Who(Reactor[str]):
    """A step that tells the request it was spawned by."""

    @step
    async def first(self) -> str:
        """Read the context variable, and set it for nobody else."""
        seen = request_id.get()
        request_id.set("changed by a step")
        return seen

    @step
    async def second(self, first: str, ctx: Context) -> str:
        """Read it again."""
        ctx.state["log"].append("second")
        return f"{first}, {request_id.get()}"

    @second.undo
    async def undo_second(self, ctx: Context) -> None:
        """Read it once more."""
        ctx.state["log"].append(f"undone in {request_id.get()}")


async def test_steps_see_their_requests_context(net: Net) -> None:
    """Lesson 38: a run sees the context variables of the call that spawned it, not the first call's."""
    runtime = await net.runtime(Who)
    results: dict[str, str] = {}

    async def request(name: str) -> None:
        request_id.set(name)
        results[name] = await (await runtime.spawn(Who())).result()

    async with anyio.create_task_group() as tasks:
        for name in ("one", "two"):
            tasks.start_soon(request, name)
    assert results == {"one": "one, one", "two": "two, two"}


async def test_no_requests_context_in_a_run_that_was_taken_over(net: Net) -> None:
    """Lesson 38: a run that a node takes over sees what the runtime was entered with, and no request's."""
    runtime = await net.runtime(Who)
    run = await runtime.spawn(Who())
    await run.result()

    async def request() -> None:
        request_id.set("of the request that undoes it")
        await runtime.undo(run.id)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request)
    await run.outcome()
    assert net.stage.log == ["second", "undone in none"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_caller_that_is_cancelled_during_spawn(net: Net, stage: Stage) -> None:
    """Architecture 2: `task.cancel()` on the caller, at any moment, tears no run."""
    runtime = await net.runtime(Chain)
    for moment in range(12):
        task = asyncio.create_task(spawn_keyed(runtime, str(moment)))
        for _ in range(moment):
            await checkpoint()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await net.settle()
    runs = [each async for each in runtime.runs()]
    assert runs
    assert {each.status for each in runs} == {"completed"}
    assert stage.times("c") == len(runs)


async def spawn_keyed(runtime: Runtime, key: str) -> None:
    """Spawn a run."""
    await runtime.spawn(Chain(), key=key)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_caller_that_is_cancelled_during_undo(net: Net, stage: Stage) -> None:
    """Architecture 2, lesson 21: `task.cancel()` on the caller of an undo does not tear the undo."""
    runtime = await net.runtime(Chain)
    for moment in range(12):
        run = await runtime.spawn(Chain())
        await run.result()
        task = asyncio.create_task(runtime.undo(run.id))
        for _ in range(moment):
            await checkpoint()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await net.settle()
        assert await net.status(run.id) in ("completed", "cancelled")
    statuses = [each.status async for each in runtime.runs()]
    assert statuses.count("cancelled") == stage.times("undo a") == stage.times("undo b") > 0


async def test_entering_in_one_task_and_leaving_in_another() -> None:
    """Architecture 4: lifespans and test fixtures enter and leave in different tasks."""
    runtime = Runtime(reactors=[Solo], state={"stage": Stage()})
    for each in (runtime.__aenter__, runtime.close):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(each)


Message = MutableMapping[str, Any]


class Visit:
    """A server that starts an ASGI application, sends one request, and stops it."""

    def __init__(self, app: Starlette) -> None:
        self.app = app
        self.state: dict[str, Any] = {}
        self.answered: list[Message] = []
        self.started = anyio.Event()
        self.done = anyio.Event()

    async def make(self) -> bytes:
        """Return the body of the answer."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.app, {"type": "lifespan", "state": self.state}, self.life, self.answer)
            await self.started.wait()
            scope: Message = {
                "type": "http",
                "method": "GET",
                "path": "/",
                "headers": [],
                "state": self.state,
            }
            await self.app({**scope, "query_string": b""}, self.request, self.answer)
            self.done.set()
        return b"".join(message.get("body", b"") for message in self.answered)

    async def life(self) -> Message:
        """Tell the application to start, then to stop."""
        if self.started.is_set() or any("startup" in message["type"] for message in self.answered):
            await self.done.wait()
            return {"type": "lifespan.shutdown"}
        return {"type": "lifespan.startup"}

    async def request(self) -> Message:
        """Send an empty request."""
        await checkpoint()
        return {"type": "http.request"}

    async def answer(self, message: Message) -> None:
        """Take what the application says."""
        await checkpoint()
        self.answered.append(message)
        if message["type"] == "lifespan.startup.complete":
            self.started.set()


async def greet(request: Request) -> PlainTextResponse:
    """Answer with the result of a run."""
    return PlainTextResponse(await request.state.rewound.run(Solo()))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_starlette(backend: str) -> None:
    """Embedding: `lifespan=runtime.lifespan`; requests find the runtime in their state.

    A runtime of a module may be used on one event loop after another, as test clients do.
    """
    stage = Stage()
    runtime = Runtime(reactors=[Solo], state={"stage": stage})
    app = Starlette(routes=[Route("/", greet)], lifespan=runtime.lifespan)
    for _ in range(2):
        assert anyio.run(Visit(app).make, backend=backend) == b"a"
    assert stage.times("a") == 2


async def test_a_lifespan_beside_others(anyio_backend: Any) -> None:
    """Embedding: the runtime is an ordinary context manager, next to what is already there."""
    runtime = Runtime(reactors=[Solo], state={"stage": Stage()})

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncGenerator[dict[str, Any]]:
        async with runtime:
            yield {"rewound": runtime}

    app = Starlette(routes=[Route("/", greet)], lifespan=lifespan)
    assert await Visit(app).make() == b"a"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_aiohttp() -> None:
    """Embedding: `cleanup_ctx.append(runtime.cleanup_ctx)`."""
    runtime = Runtime(reactors=[Solo], state={"stage": Stage()})
    app = web.Application()
    app.cleanup_ctx.append(runtime.cleanup_ctx)
    runner = web.AppRunner(app)
    await runner.setup()
    assert await runtime.run(Solo()) == "a"
    await runner.cleanup()


async def test_it_leaves_the_program_alone() -> None:
    """Lesson 42: no signal handler, no logging handler or level, no event-loop policy is changed."""

    def look() -> list[Any]:
        root, ours = logging.getLogger(), logging.getLogger("rewound")
        handlers = [*map(signal.getsignal, (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD))]
        logs = [[*root.handlers], root.level, [*ours.handlers], ours.level, ours.propagate]
        policy = asyncio.get_event_loop_policy()  # pyright: ignore[reportDeprecated]
        return [handlers, logs, type(policy)]

    before = look()
    async with Runtime(reactors=[Solo], state={"stage": Stage()}) as runtime:
        await runtime.run(Solo())
        assert look() == before
    assert look() == before


async def test_a_run_outlives_the_task_that_spawned_it(net: Net, stage: Stage) -> None:
    """Lessons 38 and 39: a run is not the child of the task that spawned it."""
    runtime = await net.runtime(Solo)
    stage.close("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.spawn, Solo())
        await net.settle()
        tasks.cancel_scope.cancel()
    stage.open("a")
    await net.settle()
    assert [each.status async for each in runtime.runs()] == ["completed"]


async def test_a_step_may_spawn(net: Net) -> None:
    """A step may spawn a run of its own and wait for it, whatever the limits."""
    holder: list[Runtime] = []
    runtime = await net.runtime(Parent, Solo, state={"runtime": holder})
    holder.append(runtime)
    assert await runtime.run(Parent()) == "a"


class Parent(Reactor[str]):
    """A run that runs another."""

    @step
    async def child(self, ctx: Context) -> str:
        """Run it."""
        runtime: Runtime = ctx.state["runtime"][0]
        return await runtime.run(Solo())
