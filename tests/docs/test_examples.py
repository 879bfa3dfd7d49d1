"""Every example of README and docs runs, on every event loop, and prints what the page says."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.docs.pages import ROOT, Program, programs, programs_of

LOOPS: dict[str, dict[str, Any]] = {
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}


@pytest.fixture(params=LOOPS)
def patch(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    """Have `anyio.run` use a given event loop, and the files that examples write go to a fresh folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(anyio, "run", partial(anyio.run, **LOOPS[request.param]))
    return monkeypatch


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_example_runs(program: Program, patch: pytest.MonkeyPatch) -> None:
    """The program runs, and each of its blocks prints what the page shows after it."""
    program.run(patch)


def test_first_example_says_hello(patch: pytest.MonkeyPatch) -> None:
    """The first thing a reader tries works."""
    program = programs_of(ROOT / "README.md")[0]
    program.blocks[0].prints = "hello Ada\n"
    program.run(patch)
