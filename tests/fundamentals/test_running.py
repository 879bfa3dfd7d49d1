"""Starting runs and getting their results."""

import gc
from datetime import timedelta
from typing import Any

import anyio
import pytest
from msgspec import Struct

from rewound import (
    Completed,
    Context,
    DefinitionError,
    Reactor,
    RunNotFound,
    Runtime,
    RuntimeClosed,
    step,
)

pytestmark = pytest.mark.anyio


class Greet(Reactor[str]):
    """The smallest reactor: one input, one step."""

    name: str

    @step
    async def hello(self) -> str:
        """Greet."""
        return f"hello {self.name}"


class Wait(Reactor[str]):
    """A run that lasts until the test opens the gate."""

    @step
    async def wait(self, ctx: Context) -> str:
        """Wait for the gate."""
        ctx.state["log"].append("waiting")
        await ctx.state["gate"].wait()
        ctx.state["log"].append("done")
        return "done"


class Note(Reactor[str]):
    """A run that leaves a note."""

    text: str

    @step
    async def write(self, ctx: Context) -> str:
        """Write the note."""
        ctx.state["log"].append(self.text)
        return self.text


class Point(Struct):
    """A value of the user's own."""

    x: int
    y: int


class Mirror(Reactor[Point]):
    """A run whose result is a struct."""

    point: Point

    @step
    async def flip(self) -> Point:
        """Swap the coordinates."""
        return Point(self.point.y, self.point.x)


async def test_spawn_and_result(runtime: Runtime) -> None:
    """`spawn` starts a run; `result` waits for its end."""
    run = await runtime.spawn(Greet(name="Ada"))
    assert await run.result() == "hello Ada"


async def test_run(runtime: Runtime) -> None:
    """`run` is `spawn` and `result` in one."""
    assert await runtime.run(Greet(name="Ada")) == "hello Ada"


async def test_inputs_as_a_mapping(runtime: Runtime) -> None:
    """A run may be spawned from the class and a mapping, such as the body of a request."""
    assert await runtime.run(Greet, {"name": "Ada"}) == "hello Ada"


async def test_result_has_its_type(runtime: Runtime) -> None:
    """A result comes back as the step's return annotation says, not as plain data."""
    assert await runtime.run(Mirror(point=Point(1, 2))) == Point(2, 1)


async def test_outcome(runtime: Runtime) -> None:
    """`outcome` says how a run ended as a value, for `match` statements."""
    run = await runtime.spawn(Greet(name="Ada"))
    match await run.outcome():
        case Completed(value):
            assert value == "hello Ada"
        case _:
            pytest.fail("the run should have completed")


async def test_result_in_time_or_not_at_all(url: str) -> None:
    """`result(timeout=)` gives up waiting; the run goes on."""
    gate, log = anyio.Event(), list[str]()
    async with Runtime(url, state={"gate": gate, "log": log}) as runtime:
        run = await runtime.spawn(Wait())
        with pytest.raises(TimeoutError, match="it goes on"):
            await run.result(timeout=timedelta(milliseconds=1))
        gate.set()
        assert await run.result() == "done"


async def test_get(runtime: Runtime) -> None:
    """A run is found again by its id."""
    spawned = await runtime.spawn(Greet(name="Ada"))
    found = await runtime.get(spawned.id, Greet)
    assert await found.result() == "hello Ada"
    assert await (await runtime.get(spawned.id)).status() == "completed"


async def test_no_such_run(runtime: Runtime) -> None:
    """An id that belongs to no run says so."""
    with pytest.raises(RunNotFound, match="nowhere"):
        await runtime.get("nowhere", Greet)


async def test_key(runtime: Runtime, log: list[str]) -> None:
    """With a key there is one run, however often it is spawned; the first inputs count."""
    first = await runtime.spawn(Note(text="first"), key="order-17")
    again = await runtime.spawn(Note(text="again"), key="order-17")
    assert (first.existing, again.existing, again.inputs_differ) == (False, True, True)
    assert again.id == first.id
    assert await again.result() == "first"
    assert log == ["first"]


async def test_one_key_means_one_run_per_reactor(runtime: Runtime) -> None:
    """Two reactors may use the same key."""
    note = await runtime.spawn(Note(text="hello"), key="17")
    greeting = await runtime.spawn(Greet(name="Ada"), key="17")
    assert note.id != greeting.id


async def test_handle_may_be_dropped(url: str) -> None:
    """A run goes on when nobody holds its handle."""
    gate, log = anyio.Event(), list[str]()
    async with Runtime(url, state={"gate": gate, "log": log}) as runtime:
        await runtime.spawn(Wait())
        gc.collect()
        gate.set()
    assert log == ["waiting", "done"]


async def test_listing(runtime: Runtime) -> None:
    """`runs` lists runs by status and reactor, newest first."""
    for name in ("Ada", "Bob"):
        await runtime.run(Greet(name=name), key=name)
    await runtime.run(Note(text="hello"))
    keys = [each.key async for each in runtime.runs(status="completed", reactor=Greet)]
    assert sorted(keys, key=str) == ["Ada", "Bob"]
    assert [each async for each in runtime.runs(status="failed")] == []


async def test_state_is_opened_and_closed_with_the_runtime(url: str) -> None:
    """`state=` may be a function that gives a context manager: pools live as long as the runtime."""
    log: list[str] = []

    class Pool:
        async def __aenter__(self) -> dict[str, Any]:
            log.append("opened")
            return {"log": log}

        async def __aexit__(self, *_: object) -> None:
            log.append("closed")

    async with Runtime(url, state=Pool) as runtime:
        await runtime.run(Note(text="used"))
    assert log == ["opened", "used", "closed"]


async def test_two_runtimes_on_one_storage(url: str, log: list[str]) -> None:
    """A run may be spawned in one process and awaited in another."""
    async with Runtime(url, state={"log": log}) as one, Runtime(url, state={"log": log}) as other:
        run = await one.spawn(Note(text="hello"))
        assert await (await other.get(run.id, Note)).result() == "hello"
    assert log == ["hello"]


async def test_restart(url: str, log: list[str]) -> None:
    """What ran before a restart is still there after it."""
    async with Runtime(url, state={"log": log}) as runtime:
        run = await runtime.spawn(Note(text="hello"))
        await run.result()
    async with Runtime(url, state={"log": log}) as runtime:
        assert await (await runtime.get(run.id, Note)).result() == "hello"
    assert log == ["hello"]


async def test_only_the_reactors_it_was_given(url: str) -> None:
    """A runtime with `reactors=` runs these and no others."""
    async with Runtime(url, reactors=[Greet]) as runtime:
        with pytest.raises(DefinitionError, match="add it to reactors="):
            await runtime.spawn(Note(text="hello"))


async def test_closed_runtime(url: str) -> None:
    """A runtime takes work inside its block and nowhere else."""
    runtime = Runtime(url)
    with pytest.raises(RuntimeClosed):
        await runtime.spawn(Greet(name="Ada"))
    async with runtime:
        await runtime.run(Greet(name="Ada"))
    with pytest.raises(RuntimeClosed):
        await runtime.spawn(Greet(name="Ada"))
