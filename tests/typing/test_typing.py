"""What type checkers make of declaring and of running."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import copy

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PAGES = [HERE / "declared.py", HERE / "runtime.py"]


def run(*command: str) -> str:
    """Run a type checker, which must find nothing."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_mypy(page: Path) -> None:
    """The asserted types and the expected errors are mypy's; its strict mode refuses unused ignores."""
    assert "no issues found in 1 source file" in run("mypy", str(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pyright(page: Path, tmp_path: Path) -> None:
    """The asserted types and the expected errors are pyright's, without a look at mypy's ignores."""
    copy(page, tmp_path)
    settings = {
        "extraPaths": [str(ROOT)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    report = run("pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, "--outputjson")
    assert json.loads(report)["summary"]["filesAnalyzed"] == 1
