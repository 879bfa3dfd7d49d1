"""`rewound undo`, `cancel`, `retry`: what a person may ask of a run."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import anyio
import typer

from rewound import Cancelled, Completed, Failed, Outcome, Runtime
from rewound.cli.shared import BAD, CommandError, load_runtime, perform

__all__ = ["cancel", "retry", "undo"]

PATIENCE: Final = 30.0  # seconds to wait for a node that takes the request

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id.")]
App = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:RUNTIME", help="Your runtime. It carries the request out, and what else waits for it."
    ),
]
StoreOnly = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="REWOUND_STORE",
        help="Leave it to a node that is up on this storage.",
    ),
]
Reason = Annotated[str, typer.Option(help="Kept with the run.")]

Ask = Callable[[Runtime], Awaitable[None]]


def undo(run_id: RunId, app: App = None, store: StoreOnly = None, reason: Reason = "") -> None:
    """Take a run back: cut what is in flight, compensate it, undo what had completed, newest first.

    Exit code 0: it was taken back. 1: something could not be undone. 2: it was refused.
    """
    _carry_out(run_id, app, store, lambda runtime: runtime.undo(run_id, reason=reason))


def cancel(run_id: RunId, app: App = None, store: StoreOnly = None, reason: Reason = "") -> None:
    """Stop a run and undo nothing; `rewound undo` still can, later."""
    _carry_out(run_id, app, store, lambda runtime: runtime.cancel(run_id, reason=reason))


def retry(run_id: RunId, app: App = None, store: StoreOnly = None) -> None:
    """Start a rolled-back run again, or let a stuck one go on.

    Exit code 0: it completed. 1: it did not. 2: it was refused.
    """
    _carry_out(run_id, app, store, lambda runtime: runtime.retry(run_id))


def _carry_out(run_id: str, app: str | None, store: str | None, ask: Ask) -> None:
    async def carried_out() -> int:
        if app:
            return await _here(load_runtime(app), run_id, ask)
        if store:
            return await _elsewhere(store, run_id, ask)
        raise CommandError("give --app module:runtime, or --store URL if a node that knows the run is up")

    perform(carried_out)


async def _here(runtime: Runtime, run_id: str, ask: Ask) -> int:
    """Ask on a node that can run it, and stay until it has ended: leaving would stop the work."""
    async with runtime:
        await ask(runtime)
        run = await runtime.get(run_id)
        outcome = await run.outcome()
    typer.echo(f"run {run_id}: {shown_outcome(outcome)}")
    for failure in outcome.rollback_failures:
        typer.echo(f"  {failure.kind} of {failure.step} failed: {failure.error}: {failure.message}")
    return BAD if outcome.rollback_failures or isinstance(outcome, Failed) else 0


async def _elsewhere(store: str, run_id: str, ask: Ask) -> int:
    """Leave the request in storage for a node that knows the reactor, and wait until one has accepted it."""
    try:
        async with Runtime(store, reactors=[]) as runtime:
            with anyio.fail_after(PATIENCE):
                await ask(runtime)
    except TimeoutError:
        raise CommandError(
            f"no node has answered for {PATIENCE:g} seconds. The request stays with the run, and the "
            "next node that knows its reactor carries it out; --app module:runtime does it here"
        ) from None
    typer.echo(f"run {run_id}: accepted")
    return 0


def shown_outcome(outcome: Outcome[object]) -> str:
    """Say in one line how a run ended."""
    match outcome:
        case Completed(value):
            return f"completed: {value!r}"
        case Failed():
            return f"failed: {outcome}"
        case Cancelled(reason, undone):
            return ("taken back" if undone else "cancelled") + (f": {reason}" if reason else "")
        case _:
            return f"halted: {outcome.reason}"
