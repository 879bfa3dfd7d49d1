"""`rewound check` and `rewound doctor`."""

import json
from pathlib import Path

from tests.cli.conftest import Rewound

BROKEN_NAMES = """
from rewound import Reactor, step

class Broken(Reactor[str]):
    @step
    async def reserve(self) -> str: ...

    @step
    async def charge(self, resrve: str) -> str: ...
"""

BROKEN_TYPES = """
from rewound import Reactor, step

class One(Reactor[str]):
    @step
    async def first(self) -> "Missing": ...

class Two(Reactor[str]):
    @step
    async def second(self) -> "AlsoMissing": ...
"""

ONE_WAY = '''
from rewound import Reactor, step

class Base(Reactor[str]):
    """Abstract: it has no steps."""

class OneWay(Base):
    @step
    async def send(self) -> str: ...

    @step
    async def log(self, send: str) -> str: ...
'''


def test_good_module_passes(rewound: Rewound) -> None:
    """A module whose reactors are right is exit code 0."""
    result = rewound("check", "shop")
    assert result.stdout == "ok   every reactor of shop is well defined\n"
    assert result.exit_code == 0


def test_wrong_names_are_told(rewound: Rewound, folder: Path) -> None:
    """An error that comes up when the class is created is told like any other."""
    (folder / "broken_names.py").write_text(BROKEN_NAMES, "utf-8")
    result = rewound("check", "broken_names")
    assert "fail Broken.charge: no step or input 'resrve'" in result.stdout
    assert result.exit_code == 1


def test_every_wrong_reactor_is_told(rewound: Rewound, folder: Path) -> None:
    """A6: errors that come up only when annotations are resolved are told for every reactor."""
    (folder / "broken_types.py").write_text(BROKEN_TYPES, "utf-8")
    result = rewound("check", "broken_types")
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["fail", "fail"]


def test_steps_without_undo_are_remarked(rewound: Rewound, folder: Path) -> None:
    """A step that a later failure could not take back is worth a remark, not an error."""
    (folder / "one_way.py").write_text(ONE_WAY, "utf-8")
    result = rewound("check", "one_way")
    assert "warn OneWay.send has no undo" in result.stdout
    assert result.exit_code == 0


def test_missing_module_is_told(rewound: Rewound) -> None:
    """A module that is not there is exit code 2, without a traceback."""
    result = rewound("check", "nowhere.to.be")
    assert result.exit_code == 2
    assert "there is no module 'nowhere.to.be'" in result.stderr


def test_module_that_needs_a_missing_one_shows_why(rewound: Rewound, folder: Path) -> None:
    """An import error inside the module is the module's, and its traceback is kept."""
    (folder / "needy.py").write_text("import nowhere_at_all\n", "utf-8")
    result = rewound("check", "needy")
    assert isinstance(result.exception, ModuleNotFoundError)
    assert result.exception.name == "nowhere_at_all"


def test_doctor_examines_a_store(rewound: Rewound) -> None:
    """Each finding is a line that begins with its level."""
    result = rewound("doctor", "sqlite:///shop.db")
    assert result.exit_code == 0
    assert {line.split()[0] for line in result.stdout.splitlines()} <= {"ok", "warn"}


def test_doctor_prints_json(rewound: Rewound) -> None:
    """With --json the findings are data."""
    findings = json.loads(rewound("doctor", "memory://", "--json").stdout)
    assert set(findings[0]) == {"name", "level", "message"}


def test_doctor_reports_what_was_refused(rewound: Rewound) -> None:
    """A store that Rewound refuses to open is a finding: exit code 1."""
    result = rewound("doctor", "mysql://x")
    assert result.stdout.startswith("fail settings: storage URL")
    assert result.exit_code == 1
