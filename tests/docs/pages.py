"""The programs in README and docs: fenced blocks, put together and run.

A page's `python` blocks are one program in order; a block that begins with `import anyio` begins another.
A `text` block right after one is what it must print.
"""

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec import Struct

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(Struct):
    """A fenced block: its code, the line where that begins, and what it must print if that is told."""

    code: str
    line: int
    prints: str | None = None


class Program(Struct):
    """Blocks of one page that share their names."""

    page: Path
    blocks: list[Block]

    @property
    def name(self) -> str:
        """Name it after its page and line."""
        return f"{self.page.name}:{self.blocks[0].line}"

    @property
    def source(self) -> str:
        """The whole program, each block on the lines it has in the page."""
        lines: list[str] = []
        for block in self.blocks:
            lines += [""] * (block.line - 1 - len(lines)) + block.code.splitlines()
        return "\n".join(lines) + "\n"

    def run(self, patch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Run it as a module of its own, compare what it prints, and return its names."""
        module = ModuleType(f"page_{self.page.stem}_{self.blocks[0].line}")
        patch.setitem(sys.modules, module.__name__, module)
        for block in self.blocks:
            code = compile("\n" * (block.line - 1) + block.code, str(self.page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, module.__dict__)  # noqa: S102  it is our own page
            if block.prints is not None:
                assert printed.getvalue() == block.prints, f"{self.page.name}:{block.line}"
        return module.__dict__


def programs() -> list[Program]:
    """Return every program of every page."""
    return [program for page in PAGES for program in programs_of(page)]


def programs_of(page: Path) -> list[Program]:
    """Return a page's programs."""
    text = page.read_text("utf-8")
    found: list[Program] = []
    for match in _FENCE.finditer(text):
        language, code = match["language"], match["code"]
        line = text.count("\n", 0, match.start("code")) + 1
        if language == "python":
            if not found or code.startswith("import anyio\n"):
                found.append(Program(page, []))
            found[-1].blocks.append(Block(code, line))
        elif language == "text":
            found[-1].blocks[-1].prints = code
    return found
