"""Which status allows which verb (docs/rules.md section 3).

====================  =======================================================================
queued                cancel
running, paused       undo, cancel
rolling_back          nothing: `RollbackInProgress`
completed, halted     undo
cancelled             undo, if it was not undone yet or an undo of it failed
failed                retry, if no rollback failure is left; undo, if one is
stuck                 retry; undo and cancel, unless it was rolling back
====================  =======================================================================

Anything else is `WrongStatus`.
"""

from rewound.errors import RollbackIncomplete, RollbackInProgress, VerbError, WrongStatus
from rewound.runtime.engine.messages import VerbName
from rewound.runtime.engine.state import RunState

__all__ = ["refusal"]


def refusal(state: RunState, verb: VerbName) -> VerbError | None:
    """Return the error that the caller of `verb` gets, or `None` if the run allows it."""
    if state.status == "rolling_back":
        return RollbackInProgress(f"{verb} was refused: the run is rolling back; wait for its end")
    if verb == "retry" and state.status == "failed" and _left(state):
        return RollbackIncomplete(
            f"retry was refused: {_left(state)} rollback failures are left; "
            "undo repeats them, then retry is possible"
        )
    if verb in _allowed(state):
        return None
    allowed = " or ".join(_allowed(state)) or "no verb"
    return WrongStatus(f"{verb} was refused: the run is {state.status}, which allows {allowed}")


def _left(state: RunState) -> int:
    return len(state.rollback_failures) + state.left


def _allowed(state: RunState) -> tuple[str, ...]:
    match state.status:
        case "queued":
            return ("cancel",)
        case "running" | "paused":
            return ("undo", "cancel")
        case "completed" | "halted":
            return ("undo",)
        case "cancelled":
            return ("undo",) if state.cause is None or _left(state) else ()
        case "failed":
            return ("undo",) if _left(state) else ("retry",)
        case _:  # stuck
            return ("retry",) if state.parked_in == "rolling_back" else ("retry", "undo", "cancel")
