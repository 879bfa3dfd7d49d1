"""`rewound check` and `rewound doctor`: is what you wrote, and what you run it on, sound?"""

import json
from contextlib import suppress
from types import ModuleType
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from rewound import DefinitionError, Reactor, Runtime, StorageConfigError, check_module, lint, plan_of
from rewound.cli.shared import BAD, AsJson, load_module, perform

__all__ = ["check", "doctor"]

COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def check(
    module: Annotated[str, typer.Argument(help="A module that defines reactors, such as shop.sagas.")],
) -> None:
    """Check the reactors of a module: every definition, and steps that could not be taken back.

    Exit code 0: the definitions are right; remarks may be left. 1: some are wrong.
    """

    async def checked() -> int:
        errors, remarks = _examine(module)
        for level, texts in (("fail", errors), ("warn", remarks)):
            for text in texts:
                _print(level, text)
        if not errors:
            _print("ok", f"every reactor of {module} is well defined")
        return BAD if errors else 0

    perform(checked)


def _examine(name: str) -> tuple[list[str], list[str]]:
    """Return what is wrong with a module's reactors, and what is worth a remark."""
    try:
        module = load_module(name)
    except DefinitionError as error:  # found when the class was created
        return [str(error)], []
    errors = [str(error) for error in check_module(module)]
    return errors, [remark for reactor in _reactors_in(module) for remark in _remarks(reactor)]


def _reactors_in(module: ModuleType) -> list[type[Reactor[object]]]:
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    return [each for each in dict.fromkeys(classes) if issubclass(each, Reactor) and each is not Reactor]


def _remarks(reactor: type[Reactor[object]]) -> list[str]:
    with suppress(DefinitionError):  # told among the errors; or abstract, which is no fault
        return lint(plan_of(reactor))
    return []


def doctor(
    url: Annotated[str, typer.Argument(help="URL of the storage.")],
    as_json: AsJson = False,  # noqa: FBT002  a flag of the command line
) -> None:
    """Examine a storage and its settings.

    Exit code 0: fit for use; warnings say what is at risk. 1: something must change. 2: out of reach.
    """

    async def examined() -> int:
        found = await _findings(url)
        if as_json:
            typer.echo(json.dumps(found, indent=2))
        else:
            for finding in found:
                _print(finding["level"], f"{finding['name']}: {finding['message']}")
        return BAD if any(finding["level"] == "fail" for finding in found) else 0

    perform(examined)


async def _findings(url: str) -> list[dict[str, str]]:
    try:
        async with Runtime(url, reactors=[]) as runtime:
            return [msgspec.to_builtins(finding) for finding in await runtime.doctor()]
    except StorageConfigError as error:  # refused at the door: that is a finding, too
        return [{"name": "settings", "level": "fail", "message": str(error)}]


def _print(level: str, text: str) -> None:
    Console().print(
        Text(f"{level:4}", style=COLOURS[level]), text, highlight=False, markup=False, soft_wrap=True
    )
