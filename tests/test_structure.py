"""The shape of the package: which module may import which, and what its public names owe a reader."""

import ast
import asyncio
import typing
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

import rewound
from rewound import errors

ROOT = Path(rewound.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# Who may import what within the package (architecture: surfaces -> runtime -> {actors, storage}).
ARROWS = {
    "errors": set[str](),
    "actors": {"errors"},
    "storage": {"errors"},
    "pure": {"errors"},
    "runtime": {"errors", "actors", "storage", "pure"},
    "facade": {"errors", "actors", "storage", "pure", "runtime"},
    "surface": {"facade"},
}
FACADES = {"rewound", "rewound.guards", "rewound.processes"}
# What `rewound.testing` hands on to those who test with it: the two layers below have names of their own.
LENT = {"rewound.actors", "rewound.storage"}
SURFACES = {"cli", "demo", "testing", "web", "telemetry"}
PURE = {"declare", "engine", "context", "outcomes", "results"}
# What pure code must not touch: tasks, clocks, chance, the world.
IMPURE = {"anyio", "asyncio", "trio", "time", "random", "secrets", "socket", "subprocess", "threading", "os"}
# Everything else runs on any loop, through anyio. These may know a loop by name: redis-py's client is
# asyncio's, and a host task must outlive the task that made it, which anyio has no word for.
LOOP_BOUND = ("rewound.storage.redis", "rewound.storage.sqlite", "rewound.actors.host")

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    """Return the dotted name of a module of the package."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str:
    """Return the layer that a module of the package belongs to."""
    parts = module.split(".")
    if module in FACADES:
        return "facade"
    if parts[1] in SURFACES:
        return "surface"
    if parts[1] == "runtime" and len(parts) > 2 and parts[2] in PURE:
        return "pure"
    return parts[1]


def imports_of(path: Path) -> Iterator[str]:
    """Yield the dotted name of every module that a file imports, wherever in the file."""
    known = {name_of(module) for module in MODULES}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            base = node.module or ""
            submodules = [f"{base}.{alias.name}" for alias in node.names]
            yield from (name if name in known else base for name in submodules)


def definitions_in(body: list[ast.stmt]) -> Iterator[Definition]:
    """Yield the public classes and functions that a module or class defines, overload stubs aside."""
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            decorators = [ast.unparse(each) for each in node.decorator_list]
            if not any(text.endswith(("overload", ".setter")) for text in decorators):
                yield node


def undocumented(path: Path) -> Iterator[str]:
    """Yield the name of each public definition of a module that has no docstring, methods included."""
    for node in definitions_in(ast.parse(path.read_text("utf-8")).body):
        members = definitions_in(node.body) if isinstance(node, ast.ClassDef) else ()
        yield from (each.name for each in (node, *members) if not ast.get_docstring(each))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    """A module imports its own layer and those below it, nothing else of the package."""
    layer = layer_of(name_of(path))
    assert layer in ARROWS, f"{name_of(path)} belongs to no layer"
    allowed = ARROWS[layer] | {layer}
    wrong = {
        target
        for target in imports_of(path)
        if target.split(".")[0] == "rewound" and layer_of(target) not in allowed
    }
    if name_of(path).startswith("rewound.testing"):
        wrong -= LENT
    assert not wrong, f"{name_of(path)} ({layer}) imports {sorted(wrong)}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_pure_layers_touch_nothing(path: Path) -> None:
    """`declare` and `engine` decide: they start no task, read no clock, roll no dice and do no I/O."""
    if layer_of(name_of(path)) == "pure":
        assert not {target.split(".")[0] for target in imports_of(path)} & IMPURE


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_event_loops_are_reached_through_anyio(path: Path) -> None:
    """Only the storage drivers that need it import an event loop by name."""
    if not name_of(path).startswith(LOOP_BOUND):
        assert not {target.split(".")[0] for target in imports_of(path)} & {"asyncio", "trio"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_public_names_are_documented(path: Path) -> None:
    """Every module, public class, function and method has a docstring."""
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), f"{name_of(path)} has no docstring"
    assert not list(undocumented(path))


def test_facade_lists_what_it_exports() -> None:
    """`rewound.__all__` is sorted and holds the version and every name that `rewound` imports."""
    tree = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert rewound.__all__ == sorted({*imported, "__version__"})


def test_facade_exports_every_error() -> None:
    """Whatever Rewound raises can be caught by a name of the facade."""
    assert set(errors.__all__) <= set(rewound.__all__)


def test_facade_shadows_no_familiar_name() -> None:
    """`from rewound import *` hides nothing of asyncio, anyio or typing."""
    familiar = {name for module in (asyncio, anyio, typing) for name in dir(module) if name[0] != "_"}
    assert not familiar & set(rewound.__all__)
