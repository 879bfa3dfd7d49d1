"""How an ended run ended, from its state."""

from collections.abc import Callable
from typing import Any

from rewound.runtime.declare import Plan
from rewound.runtime.engine.state import Phase, RunState, StepState
from rewound.runtime.outcomes import Cancelled, Completed, Failed, Halted, Outcome, StepError

__all__ = ["first_failure", "outcome_of"]


def outcome_of(
    plan: Plan, state: RunState, *, value: Callable[[], Any], inputs: dict[str, Any]
) -> Outcome[Any]:
    """Return the outcome of an ended run.

    Args:
        plan: the run's plan.
        state: its state; must be terminal.
        value: called for the result if the run completed.
        inputs: its inputs, redacted; a failure carries them.
    """
    failures = state.rollback_failures
    match state.status:
        case "completed":
            return Completed(value(), failures)
        case "halted":
            step, reason = state.halt or ("", "")
            return Halted(reason, step, failures)
        case "cancelled":
            return Cancelled(state.reason, undone=state.cause is not None, rollback_failures=failures)
        case _:
            return _failed(plan, state, inputs)


def _failed(plan: Plan, state: RunState, inputs: dict[str, Any]) -> Failed:
    first, *others = _errors(state) or [StepError("RewoundError", "no failure is on record", "", 0)]
    return Failed(
        error=first.type,
        message=first.message,
        step=first.step,
        reactor=plan.name,
        attempts=first.attempts,
        traceback=first.traceback,
        inputs=inputs,
        fields=first.fields,
        others=others,
        rollback_failures=state.rollback_failures,
    )


def first_failure(state: RunState) -> StepError | None:
    """Return the failure that stopped the run."""
    return next(iter(_errors(state)), None)


def _errors(state: RunState) -> list[StepError]:
    steps: list[StepState] = [state.steps[name] for name in state.failures]
    failed = [step.error for step in steps if step.phase is Phase.FAILED and step.error is not None]
    return [state.expired, *failed] if state.expired is not None else failed
