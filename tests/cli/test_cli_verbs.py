"""`rewound undo`, `cancel`, `retry`: what is asked is carried out, and the exit code says how it went."""

from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from rewound import Cancelled, Halted
from rewound.cli import verbs
from tests.cli.conftest import Rewound, shop_order, shop_runtime

APP = ("--app", "shop:runtime")
STORE = ("--store", "sqlite:///shop.db")


def spawned(item: str, *, ended: bool = True) -> str:
    """Spawn an order in a runtime that is left again; return its id."""
    runtime = shop_runtime()

    async def spawn() -> str:
        async with runtime:
            run = await runtime.spawn(shop_order(item))
            if ended:
                await run.outcome()
            return run.id

    return anyio.run(spawn)


def test_undo_takes_a_run_back(rewound: Rewound) -> None:
    """A completed run is undone by the app's own runtime, and the command stays until that is done."""
    run_id = spawned("mug")
    result = rewound("undo", run_id, *APP, "--reason", "a mistake")
    assert result.stdout == f"run {run_id}: taken back: a mistake\n"
    assert result.exit_code == 0


def test_undo_lists_what_could_not_be_undone(rewound: Rewound, folder: Path) -> None:
    """S5: a rollback failure is printed, and the exit code is 1."""
    run_id = spawned("mug")
    (folder / "jammed").touch()
    result = rewound("undo", run_id, *APP)
    assert "undo of reserve failed: RuntimeError: the shelf is jammed" in result.stdout
    assert result.exit_code == 1


def test_refused_verb_is_told(rewound: Rewound, folder: Path) -> None:
    """A run that failed and was rolled back has nothing to undo: exit code 2, and the reason."""
    (folder / "gold").touch()
    result = rewound("undo", spawned("gold"), *APP)
    assert result.exit_code == 2
    assert "failed" in result.stderr


def test_unknown_run_is_told(rewound: Rewound) -> None:
    """An id that no run has is exit code 2."""
    result = rewound("undo", "nobody", *APP)
    assert result.exit_code == 2
    assert result.stderr.startswith("rewound: run nobody does not exist")


def test_retry_runs_again(rewound: Rewound, folder: Path) -> None:
    """V2: a run whose cause of failure is gone completes: exit code 0."""
    (folder / "gold").touch()
    run_id = spawned("gold")
    assert rewound("retry", run_id, *APP).exit_code == 1
    (folder / "gold").unlink()
    result = rewound("retry", run_id, *APP)
    assert result.stdout == f"run {run_id}: completed: 'shelf 3, gold'\n"
    assert result.exit_code == 0


def test_cancel_stops_a_run(rewound: Rewound) -> None:
    """V1: a run that would never end is stopped, and nothing is undone."""
    run_id = spawned("patience", ended=False)
    assert rewound("cancel", run_id, *APP).stdout == f"run {run_id}: cancelled\n"


def test_halted_run_is_told() -> None:
    """A run that a step ended is told with its reason."""
    assert verbs.shown_outcome(Halted("sold out", "reserve")) == "halted: sold out"


@pytest.mark.anyio
async def test_node_that_is_up_carries_it_out(rewound: Rewound) -> None:
    """With --store the request goes to a node that knows the run, in whichever process."""
    async with shop_runtime() as runtime:
        run = await runtime.spawn(shop_order("mug"))
        await run.outcome()
        result = await anyio.to_thread.run_sync(partial(rewound, "undo", run.id, *STORE))
        assert result.stdout == f"run {run.id}: accepted\n"
        run = await runtime.get(run.id)
        assert await run.outcome(timeout=20) == Cancelled("", undone=True)


def test_request_that_nobody_takes_is_told(rewound: Rewound, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no node that knows the run is up, the command says so instead of waiting for ever."""
    monkeypatch.setattr(verbs, "PATIENCE", 0.1)
    run_id = spawned("mug")
    result = rewound("undo", run_id, *STORE)
    assert result.exit_code == 2
    assert "The request stays with the run" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --app module:runtime, or --store URL"),
        (("--app", "shop"), "--app takes module:runtime, not 'shop'"),
        (("--app", "nowhere:runtime"), "there is no module 'nowhere'"),
        (("--app", "shop:Order"), "shop:Order is ReactorMeta, not a Runtime"),
        (("--app", "shop:none"), "shop:none is NoneType, not a Runtime"),
    ],
)
def test_wrong_address_is_told(rewound: Rewound, arguments: tuple[str, ...], message: str) -> None:
    """Whatever is wrong with --app, the message names it."""
    result = rewound("undo", "r1", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
