"""The services of docs/embedding.md answer requests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp.test_utils import TestClient, TestServer
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from tests.docs.pages import ROOT, programs_of


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that docs/embedding.md defines."""
    monkeypatch.chdir(tmp_path)
    (program,) = programs_of(ROOT / "docs/embedding.md")
    return program.run(monkeypatch)


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient]:
    """Do for an app what a server does: run its lifespan, and show every request the state that it yields."""
    async with app.router.lifespan_context(app) as state:

        async def served(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "state": dict(state or {})}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://test") as client:
            yield client


@pytest.mark.anyio
async def test_fastapi_service_answers(page: dict[str, Any]) -> None:
    """The FastAPI example greets, on every event loop; a second request finds the first one's run."""
    async with client_of(page["app"]) as client:
        first = await client.post("/greetings/Ada")
        second = await client.post("/greetings/Ada")
    assert first.json()["said"] == "hello Ada"
    assert second.json() == first.json()


@pytest.mark.anyio
async def test_lifespan_of_ones_own_runs_the_runtime(page: dict[str, Any]) -> None:
    """The second FastAPI example enters the runtime beside its own things."""
    async with client_of(page["app_with_more"]):
        assert await page["runtime"].run(page["Greet"](name="Ada")) == "hello Ada"


@pytest.mark.anyio
async def test_aiohttp_service_answers(page: dict[str, Any], anyio_backend: tuple[str, Any]) -> None:
    """The aiohttp example greets; aiohttp runs on asyncio only."""
    if anyio_backend[0] == "trio":
        pytest.skip("aiohttp needs asyncio")
    async with TestClient(TestServer(page["aiohttp_app"])) as client:
        answer = await client.post("/greetings/Ada")
        assert await answer.text() == "hello Ada"


@pytest.mark.anyio
async def test_state_is_opened_by_the_runtime(page: dict[str, Any]) -> None:
    """A state function is entered with the runtime, and steps see what it yields."""
    async with page["evening"] as runtime:
        assert await runtime.run(page["Greet"](name="Ada")) == "good evening Ada"
