"""Every example of README and docs passes mypy strict and pyright strict."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import programs

pytest.importorskip("mypy", reason="type checkers are not installed")
pytest.importorskip("pyright", reason="type checkers are not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every program as a file, named after its page and line."""
    path = tmp_path_factory.mktemp("examples")
    for program in programs():
        stem = program.name.replace(".md:", "_").replace("-", "_")
        (path / f"{stem}.py").write_text(program.source, "utf-8")
    return path


def run(folder: Path, *command: str) -> str:
    """Run a tool of this Python's in the folder; return what it says if it complains."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    return done.stdout + done.stderr if done.returncode else ""


def test_examples_pass_mypy(folder: Path) -> None:
    """A reader who uses mypy strict can copy what the pages show."""
    assert not run(folder, "mypy", "--strict", "--cache-dir", str(folder / "cache"), ".")


def test_examples_pass_pyright(folder: Path) -> None:
    """A reader who uses pyright strict can copy what the pages show."""
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    assert not run(folder, "pyright", "--pythonpath", sys.executable, ".")
