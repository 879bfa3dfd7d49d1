"""Plans for the engine's tests: graphs of steps whose bodies nobody calls."""

from typing import Any

from msgspec import structs

from rewound.runtime.declare import Call, HandlerPlan, Plan, Retry, StepPlan
from rewound.runtime.declare.graph import dependents

__all__ = ["composed", "plan_for", "retrying", "step"]


def retrying(attempts: int, delay: float = 10.0) -> Retry:
    """Return a `Retry` that always waits `delay` seconds."""
    return Retry(attempts=attempts, delay=delay, backoff="fixed", jitter=0)


def never_called() -> None:
    """Stand for a body; the engine only names bodies."""
    raise AssertionError("the engine called a body")


_CALL = Call(never_called, is_async=False)


def _handler(attempts: int) -> HandlerPlan | None:
    return HandlerPlan(retrying(attempts), 60.0, _CALL) if attempts else None


def step(
    name: str,
    *needs: str,
    attempts: int = 1,
    undo: int = 1,
    compensate: int = 1,
    cancel_on_failure: bool = False,
) -> StepPlan:
    """Make a step. `undo` and `compensate` are the attempts of that handler; 0: there is none."""
    return StepPlan(
        name=name,
        label=f"Test.{name}",
        needs=needs,
        retry=retrying(attempts),
        timeout=None,
        cancel_on_failure=cancel_on_failure,
        guards=(),
        call=_CALL,
        undo=_handler(undo),
        compensate=_handler(compensate),
        returns=Any,
        decode=bytes,
        loose=False,
    )


def composed(name: str, child: Plan, *needs: str) -> StepPlan:
    """Make a step that composes a child."""
    return structs.replace(step(name, *needs, undo=0, compensate=0), child=child)


def plan_for(*steps: StepPlan | str, timeout: float | None = None) -> Plan:
    """Make a plan of steps; a name alone stands for an independent step with both handlers."""
    made = {each.name: each for each in (step(s) if isinstance(s, str) else s for s in steps)}
    needs = {name: each.needs for name, each in made.items()}
    return Plan(
        reactor=object,
        name="Test",
        version=1,
        timeout=timeout,
        guards=(),
        fingerprint="test",
        inputs=(),
        steps=made,
        dependents=dependents(needs),
        roots=tuple(name for name, wanted in needs.items() if not wanted),
        returns=None,
        result=None,
        shape=((), ()),
    )
