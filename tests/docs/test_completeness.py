"""Pages that list things list all of them, and name only what is there."""

import inspect
import re
from pathlib import Path

import pytest

import rewound
from rewound import Runtime, errors
from tests.docs.pages import PAGES, ROOT

DOCS = ROOT / "docs"
_EVENT = re.compile(r'"(rewound\.(?:run|step|rollback|claim)\.[a-z]+)"')
_RULE = re.compile(r"^\*\*(?P<number>[SV]\d+)\..*?^Tested: (?P<tested>.*?)\n\n", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_ANCHOR = re.compile(r"\]\((?P<page>[^)#:]*)#(?P<anchor>[^)]+)\)")


def page(name: str) -> str:
    """Return the text of a page."""
    return (DOCS / name).read_text("utf-8")


def events_of(text: str) -> set[str]:
    """Return the log events that a table names; in a row `.b` after `x.y.a` is `x.y.b`."""
    found: set[str] = set()
    for row in re.findall(r"^\| (`rewound\.[^|]+)\|", text, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", row)
        kind = first.rpartition(".")[0]
        found |= {first, *(kind + other for other in others)}
    return found


def test_operating_lists_every_log_event() -> None:
    """Whoever filters logs finds all events in the table."""
    sources = Path(rewound.__file__).parent.rglob("*.py")
    logged = {event for source in sources for event in _EVENT.findall(source.read_text("utf-8"))}
    assert logged
    assert not logged - events_of(page("operating.md"))


def test_operating_lists_every_setting() -> None:
    """Each option of `Runtime` that is not for tests or bodies has a row."""
    options = set(inspect.signature(Runtime).parameters) - {"clock", "state"}
    assert not {option for option in options if f"| `{option}` |" not in page("operating.md")}


def test_errors_lists_every_error() -> None:
    """Whatever may be caught is explained."""
    assert not {
        name for name in errors.__all__ if name != "RewoundError" and f"`{name}" not in page("errors.md")
    }


@pytest.mark.parametrize("name", ["architecture.md", "rules.md"])
def test_named_files_are_there(name: str) -> None:
    """A contributor finds the tests and modules that these pages name."""
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", page(name)))
    here = {path.as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    assert named
    assert not {file for file in named if not any(path.endswith(f"/{file}") for path in here)}


def test_rules_are_tested_where_the_page_says() -> None:
    """The tests that a rule names cite it by its number."""
    rules = list(_RULE.finditer(page("rules.md")))
    assert [rule["number"] for rule in rules] == [*(f"S{n}" for n in range(1, 13)), "V1", "V2", "V3"]
    for rule in rules:
        for name in re.findall(r"`(?:tests/runtime/[a-z/]*)?(test_[a-z_]+\.py)`", rule["tested"]):
            tests = [path.read_text("utf-8") for path in (ROOT / "tests/runtime").rglob(name)]
            cited = [text for text in tests if re.search(rf"\b{rule['number']}\b", text)]
            assert cited, (rule["number"], name)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_anchors_are_there(path: Path) -> None:
    """A link into a page leads to one of its headings."""
    for match in _ANCHOR.finditer(path.read_text("utf-8")):
        target = path.parent / match["page"] if match["page"] else path
        titles = [each["title"].lower() for each in _HEADING.finditer(target.read_text("utf-8"))]
        assert match["anchor"] in {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}
