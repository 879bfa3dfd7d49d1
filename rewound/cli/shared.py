"""What the commands share: options, running async code, errors as one line and an exit code."""

import logging
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final

import anyio
import typer

from rewound import RewoundError, Runtime

__all__ = ["BAD", "NOT_DONE", "AsJson", "CommandError", "Store", "load_module", "load_runtime", "perform"]

BAD: Final = 1  # done, and the answer is bad
NOT_DONE: Final = 2
_QUIET: Final = logging.NullHandler()

Store = Annotated[
    str, typer.Option(envvar="REWOUND_STORE", help="URL of the storage.", metavar="URL", show_envvar=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class CommandError(Exception):
    """A command cannot be carried out; the message says why and what to do."""


def perform(work: Callable[[], Awaitable[int]], *expected: type[Exception]) -> None:
    """Run an async command and exit with the code that it returns.

    Args:
        work: the command.
        expected: exceptions that are told in one line, beside Rewound's own.

    Raises:
        typer.Exit: always; code 2 after an exception that was told.
    """
    # A command says by itself what matters; without a handler `logging` would print warnings in between.
    logging.getLogger("rewound").addHandler(_QUIET)
    told: tuple[type[Exception], ...] = (RewoundError, CommandError, *expected)
    try:
        code = anyio.run(work)
    except told as error:
        typer.echo(f"rewound: {error}", err=True)
        code = NOT_DONE
    raise typer.Exit(code)


def load_module(name: str) -> ModuleType:
    """Import a module as `python -m` would find it: from the working directory first.

    Raises:
        CommandError: there is none of this name.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and fails to import another one
        raise CommandError(f"there is no module {name!r} here or among the installed ones") from None


def load_runtime(spec: str) -> Runtime:
    """Return the runtime that `module:name` names.

    Raises:
        CommandError: it names nothing, or something else.
    """
    name, _, attribute = spec.partition(":")
    if not name or not attribute:
        raise CommandError(f"--app takes module:runtime, not {spec!r}")
    found = getattr(load_module(name), attribute, None)
    if not isinstance(found, Runtime):
        raise CommandError(f"{spec} is {type(found).__name__}, not a Runtime")
    return found
