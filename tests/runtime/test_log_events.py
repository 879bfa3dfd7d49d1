"""What a runtime says in the log (D1)."""

import logging
from typing import Annotated, Any

import pytest

from rewound import Halt, Reactor, Redact, Retry, StepError, step
from tests.runtime.nodes import LEASE, Net, Stage
from tests.runtime.plays import Chain, Solo, Stagehand, act

pytestmark = pytest.mark.anyio


class Secretive(Reactor[str], timeout=60):
    """A run with a secret input, whose second step and first undo fail at every attempt."""

    card: Annotated[str, Redact]
    amount: int = 5

    @step
    async def a(self) -> str:
        """Succeed."""
        return "a"

    @a.undo(retry=Retry(attempts=2, delay=1, jitter=0))
    async def undo_a(self) -> None:
        """Fail."""
        raise ValueError("cannot undo")

    @step(retry=Retry(attempts=2, delay=1, jitter=0))
    async def b(self, a: str) -> str:
        """Fail."""
        raise RuntimeError("declined")

    @b.compensate
    async def compensate_b(self, error: StepError, ctx: Stagehand) -> None:
        """Act."""
        await act(ctx, "compensate b")


FAILURES = [("RuntimeError", "declined"), ("ValueError", "cannot undo")]


def events(caplog: pytest.LogCaptureFixture, *names: str) -> list[dict[str, Any]]:
    """Return the fields of the events of these names; of all events of runs if there are none."""
    told = [vars(record)["rewound"] for record in caplog.records if "rewound" in vars(record)]
    return [each for each in told if not names or each["event"] in names]


def names(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the names of the events that are about runs."""
    kinds = ("rewound.run.", "rewound.step.", "rewound.rollback.")
    return [each["event"] for each in events(caplog) if each["event"].startswith(kinds)]


async def test_every_failure_tells_what_and_why(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """D1: every failure carries reactor, run, step, redacted inputs and reason."""
    runtime = await net.runtime(Secretive)
    run = await runtime.spawn(Secretive(card="4111"))
    await net.advance(5)
    await run.outcome()
    told = events(caplog)
    assert names(caplog) == [
        "rewound.step.retrying",
        "rewound.step.failed",
        "rewound.rollback.retrying",
        "rewound.rollback.failed",
        "rewound.run.ended",
    ]
    for event in told:
        assert (event["reactor"], event["run"]) == ("Secretive", run.id)
        assert event["inputs"] == {"card": "[redacted]", "amount": 5}
        assert event["step"] in ("a", "b")
        assert (event["error"], event["reason"]) in FAILURES
    assert told[-1] | {"inputs": None} == {
        "event": "rewound.run.ended",
        "reactor": "Secretive",
        "run": run.id,
        "inputs": None,
        "status": "failed",
        "step": "b",
        "error": "RuntimeError",
        "reason": "declined",
        "attempt": 2,
        "rollback_failures": 1,
    }
    assert "4111" not in caplog.text


async def test_the_whole_story_at_debug(net: Net, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """D1: at level DEBUG everything that is recorded is told, one event a line."""
    caplog.set_level(logging.DEBUG, "rewound")
    runtime = await net.runtime(Chain)
    stage.errors["c"] = RuntimeError("no")
    await (await runtime.spawn(Chain())).outcome()
    assert names(caplog) == [
        "rewound.run.spawned",
        "rewound.step.started",
        "rewound.step.succeeded",
        "rewound.step.started",
        "rewound.step.succeeded",
        "rewound.step.started",
        "rewound.step.failed",
        "rewound.rollback.opened",
        "rewound.rollback.settled",
        "rewound.rollback.settled",
        "rewound.run.ended",
    ]


async def test_what_people_do_is_told_at_info(
    net: Net, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """D1: at level INFO the log tells of what is out of the ordinary; a run that completes is not."""
    caplog.set_level(logging.INFO, "rewound")
    runtime = await net.runtime(Solo)
    await runtime.run(Solo())
    assert names(caplog) == []
    stage.close("a")
    run = await runtime.spawn(Solo())
    await net.settle()
    await run.undo("wrong customer")
    await run.outcome()
    assert names(caplog) == [
        "rewound.run.undo",
        "rewound.step.cut",
        "rewound.rollback.opened",
        "rewound.run.ended",
    ]
    assert events(caplog, "rewound.run.undo")[0]["reason"] == "wrong customer"


async def test_halts_and_skips(net: Net, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """D1: a halt tells its reason."""
    caplog.set_level(logging.INFO, "rewound")
    runtime = await net.runtime(Solo)
    stage.errors["a"] = Halt("nothing to do")
    await (await runtime.spawn(Solo())).outcome()
    (halted,) = events(caplog, "rewound.step.halted")
    assert (halted["step"], halted["reason"]) == ("a", "nothing to do")


async def test_a_run_that_takes_too_long(net: Net, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """D1: the end of a run's time is told at the default level, with its inputs."""
    runtime = await net.runtime(Limited)
    stage.close("a")
    await runtime.spawn(Limited(note="hello"))
    await net.advance(6)
    (expired,) = events(caplog, "rewound.run.expired")
    assert expired["inputs"] == {"note": "hello"}
    assert expired["reason"] == "the run took longer than its timeout of 5 s"
    (ended,) = events(caplog, "rewound.run.ended")
    assert (ended["error"], ended["status"]) == ("TimeoutError", "failed")


class Limited(Solo, timeout=5):
    """A run that may take five seconds."""


async def test_takeover_and_parking(net: Net, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """D1: takeovers, recoveries and stuck runs are told."""
    caplog.set_level(logging.INFO, "rewound")
    stage.close("a")
    first = await net.peer(Solo, max_recoveries=0)
    run = await first.runtime.spawn(Solo(note="n"))
    await net.settle()
    await first.kill()
    runtime = await net.runtime(Solo, max_recoveries=0)
    await net.advance(2 * LEASE)
    (taken,) = events(caplog, "rewound.claim.taken")
    assert (taken["run"], taken["reason"], taken["epoch"]) == (run.id, "dead", 2)
    (stuck,) = events(caplog, "rewound.run.stuck")
    assert (stuck["inputs"], stuck["reactor"]) == ({"note": "n"}, "Solo")
    caplog.clear()
    stage.open("a")
    await runtime.retry(run.id)
    await (await runtime.get(run.id, Solo)).result()
    assert names(caplog) == ["rewound.run.resumed"]


async def test_a_retried_run(net: Net, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """D1: a run that completes in a second generation is worth a line."""
    runtime = await net.runtime(Solo)
    stage.errors["a"] = RuntimeError("no")
    run = await runtime.spawn(Solo())
    await run.outcome()
    del stage.errors["a"]
    caplog.set_level(logging.INFO, "rewound")
    caplog.clear()
    await run.retry()
    await run.result()
    assert names(caplog) == ["rewound.run.retried", "rewound.run.ended"]


async def test_a_silent_program_pays_nothing(net: Net, caplog: pytest.LogCaptureFixture) -> None:
    """D1: with logging off nothing is told, and nothing fails."""
    caplog.set_level(logging.CRITICAL, "rewound")
    runtime = await net.runtime(Secretive)
    run = await runtime.spawn(Secretive(card="4111"))
    await net.advance(5)
    await run.outcome()
    assert caplog.records == []
