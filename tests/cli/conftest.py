"""A shop to point the command line at: a module of a user's, in a folder of its own."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rewound import Reactor, Runtime
from rewound.cli.app import app
from rewound.cli.shared import load_runtime

SHOP = '''
from pathlib import Path

import anyio

from rewound import Reactor, Runtime, step


class Order(Reactor[str]):
    """An order that goes wrong as long as there is a file of its item's name."""

    item: str

    @step
    async def reserve(self) -> str:
        return f"shelf 3, {self.item}"

    @reserve.undo
    async def release(self) -> None:
        if Path("jammed").exists():
            raise RuntimeError("the shelf is jammed")

    @step
    async def charge(self, reserve: str) -> str:
        if Path(self.item).exists():
            raise ValueError(f"{self.item} is not for sale")
        if self.item == "patience":
            await anyio.sleep_forever()
        return reserve

    @charge.undo
    async def refund(self) -> None: ...


runtime = Runtime("sqlite:///shop.db", reactors=[Order], grace=0)
'''

Rewound = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Be in a folder with the module `shop`; forget it afterwards."""
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("REWOUND_STORE", raising=False)
    yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def shop_runtime() -> Runtime:
    """Make the shop's runtime anew: a runtime belongs to the event loop it was entered in."""
    sys.modules.pop("shop", None)
    return load_runtime("shop:runtime")


def shop_order(item: str) -> Reactor[str]:
    """Make an order of the shop."""
    order: Reactor[str] = import_module("shop").Order(item=item)
    return order


@pytest.fixture
def rewound(folder: Path) -> Rewound:
    """Run the command line in this process, at a wide terminal."""

    def run(*arguments: str) -> Result:
        sys.modules.pop("shop", None)  # as a process of its own would
        return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})

    return run
