"""`rewound show`: one run in full."""

import json
from pathlib import Path
from typing import get_args

import anyio
import pytest

from rewound import RunEvent, StepError
from rewound.cli.show import states_of
from rewound.runtime.engine import records as r
from rewound.runtime.events import event_of
from tests.cli.conftest import Rewound, shop_order, shop_runtime

STORE = ("--store", "sqlite:///shop.db")


def failed_run(folder: Path) -> str:
    """Let an order fail after its first step; return the run's id."""
    (folder / "gold").touch()

    async def fail() -> str:
        async with shop_runtime() as runtime:
            run = await runtime.spawn(shop_order("gold"), key="order-gold")
            await run.outcome()
            return run.id

    return anyio.run(fail)


def test_run_is_shown_step_by_step(rewound: Rewound, folder: Path) -> None:
    """The status, what each step came to, and the events in the order in which they were recorded."""
    run_id = failed_run(folder)
    lines = [line.split() for line in rewound("show", run_id, *STORE).stdout.splitlines()]
    assert lines[0] == ["Order", f"{run_id},", "key", "order-gold:", "failed"]
    assert ["reserve", "undone"] in lines
    assert ["charge", "failed"] in lines
    events = [line[2] for line in lines if len(line) > 2]
    assert events.index("step.failed") < events.index("rollback.settled") < events.index("run.ended")


def test_run_is_shown_as_json(rewound: Rewound, folder: Path) -> None:
    """With --json the summary and the events are data."""
    shown = json.loads(rewound("show", failed_run(folder), *STORE, "--json").stdout)
    assert shown["run"]["status"] == "failed"
    assert shown["events"][0]["name"] == "run.spawned"


def test_unknown_run_is_told(rewound: Rewound) -> None:
    """An id that no run has is exit code 2."""
    result = rewound("show", "nobody", *STORE)
    assert result.stderr.startswith("rewound: run nobody does not exist")
    assert result.exit_code == 2


def test_newest_event_tells_the_state() -> None:
    """A step that failed, and whose compensate failed, too, stands out; an unknown event is its own name."""
    events = [
        RunEvent(1, "run.spawned"),
        RunEvent(2, "step.started", "charge"),
        RunEvent(3, "step.failed", "charge"),
        RunEvent(4, "rollback.failed", "charge", {"kind": "compensate"}),
        RunEvent(5, "step.unheard_of", "ship"),
    ]
    assert states_of(events) == {"charge": "COMPENSATE FAILED", "ship": "step.unheard_of"}


ERROR = StepError("ValueError", "no", "charge", 1)

OF_STEPS: list[r.Record] = [
    r.Started(1, "charge", 1),
    r.Succeeded(1, "charge", b""),
    r.Succeeded(1, "charge", b"", skipped=True),
    r.Failed(1, "charge", ERROR),
    r.Failed(1, "charge", ERROR, retry_at=2),
    r.Halted(1, "charge", "enough"),
    r.Cut(1, "charge"),
    r.Within(1, ("audit",), r.RollbackOpened(1)),
    *(r.HandlerFailed(1, "charge", kind, 1, 2, ERROR) for kind in get_args(r.HandlerKind)),
    *(r.HandlerSettled(1, "charge", kind) for kind in get_args(r.HandlerKind)),
    *(r.HandlerSettled(1, "charge", kind, ERROR) for kind in get_args(r.HandlerKind)),
]


@pytest.mark.parametrize("record", OF_STEPS, ids=repr)
def test_every_fact_of_a_step_has_a_state(record: r.Record) -> None:
    """What the journal can say of a step is told in words, not as the name of an event."""
    event = event_of(record)
    assert list(states_of([event]).values()) != [event.name]


MORE = [
    r.Counted(1, "charges", 10, 9, 0),
    r.Within(1, ("charges",), r.Spawned(1, b"", "Charge", 1, None)),
    r.Within(1, ("charges",), r.Ended(1, "failed")),
]


@pytest.mark.parametrize("record", MORE, ids=repr)
def test_news_of_a_child_or_a_map_leaves_its_step_s_state(record: r.Record) -> None:
    """How many elements a map had, and that a composed child ended, is not what its step came to."""
    done = RunEvent(1, "step.succeeded", "charges")
    assert states_of([done, event_of(record)]) == {"charges": "done"}
