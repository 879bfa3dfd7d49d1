"""What type checkers make of declarations."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import copy

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
DECLARED = HERE / "declared.py"


def run(*command: str) -> str:
    """Run a type checker, which must find nothing."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_mypy() -> None:
    """The asserted types and the expected errors are mypy's; its strict mode refuses unused ignores."""
    assert "no issues found in 1 source file" in run("mypy", str(DECLARED))


def test_pyright(tmp_path: Path) -> None:
    """The asserted types and the expected errors are pyright's, without a look at mypy's ignores."""
    copy(DECLARED, tmp_path)
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
