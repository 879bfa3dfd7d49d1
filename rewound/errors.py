"""Every error Rewound raises, in one tree, named by who must act.

::

    RewoundError
    ├── DefinitionError            the author of a reactor
    ├── InputError                 the caller: .fields maps a dotted path to a message
    ├── RunError                   the code that awaits a run
    │   ├── RunFailed              .failure
    │   ├── RunHalted              .reason
    │   ├── RunCancelled           .reason
    │   └── RunStuck               .reason
    ├── VerbError                  the caller of undo, cancel, retry, resume
    │   ├── RunNotFound
    │   ├── AlreadyResumed
    │   ├── AmbiguousKey
    │   ├── RollbackIncomplete
    │   └── WrongStatus
    │       └── RollbackInProgress
    ├── SourceLost                 the author of a source: it cannot go on where it was cut off
    ├── PayloadError               the author of a step, or the caller
    │   ├── EncodeError
    │   └── PayloadTooLarge
    ├── StorageError               the operator
    │   ├── StorageConfigError     a server setting or URL that must change
    │   ├── JournalMismatch        storage lost or holds other records than the owner wrote
    │   └── ClaimLost              internal: this node no longer owns the run
    ├── ActorError                 the author of an actor
    │   ├── ActorStopped
    │   ├── AskCycle
    │   └── AskTimeout             also a TimeoutError
    └── RuntimeClosed              the caller: the runtime was not entered, or was left

    Fatal(Exception)               raised by a step: no retry
    Halt(BaseException)            raised by a step: end the run, undo nothing
"""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ActorError",
    "ActorStopped",
    "AlreadyResumed",
    "AmbiguousKey",
    "AskCycle",
    "AskTimeout",
    "ClaimLost",
    "DefinitionError",
    "EncodeError",
    "Fatal",
    "Halt",
    "InputError",
    "JournalMismatch",
    "PayloadError",
    "PayloadTooLarge",
    "RewoundError",
    "RollbackInProgress",
    "RollbackIncomplete",
    "RunCancelled",
    "RunError",
    "RunFailed",
    "RunHalted",
    "RunNotFound",
    "RunStuck",
    "RuntimeClosed",
    "SourceLost",
    "StorageConfigError",
    "StorageError",
    "VerbError",
    "WrongStatus",
]


class RewoundError(Exception):
    """The root of every error that Rewound raises."""


class DefinitionError(RewoundError):
    """A reactor, step or option is declared wrongly; the message names it and the remedy."""


class InputError(RewoundError):
    """Inputs do not fit the reactor or step they were given to.

    Args:
        subject: what was called, such as `Checkout`.
        fields: a dotted path to the message for each bad field.
    """

    def __init__(self, subject: str, fields: Mapping[str, str]) -> None:
        self.subject = subject
        self.fields = dict(fields)
        listed = "; ".join(f"{path}: {message}" for path, message in self.fields.items())
        super().__init__(f"{subject}: invalid inputs: {listed}")


class RunError(RewoundError):
    """A run that was awaited did not complete."""

    def __init__(self, run_id: str, message: str) -> None:
        self.run_id = run_id
        super().__init__(message)


class RunFailed(RunError):
    """The run failed and was rolled back. `failure` tells which step, why, and what rollback left.

    Args:
        run_id: the run.
        failure: the `Failed` outcome.
    """

    def __init__(self, run_id: str, failure: Any) -> None:
        self.failure = failure
        super().__init__(run_id, f"run {run_id} failed: {failure}")


class RunHalted(RunError):
    """The run was halted by a step; nothing was undone."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.reason = reason
        super().__init__(run_id, f"run {run_id} was halted: {reason}")


class RunCancelled(RunError):
    """The run was cancelled, or undone by hand."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.reason = reason
        super().__init__(run_id, f"run {run_id} was cancelled: {reason}")


class RunStuck(RunError):
    """The run is parked until a person acts: `runtime.retry(run_id)` carries on, `undo` takes it back."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.reason = reason
        super().__init__(run_id, f"run {run_id} is stuck: {reason}")


class VerbError(RewoundError):
    """A verb (undo, cancel, retry, resume) cannot be applied to the run."""


class RunNotFound(VerbError):
    """No run has this id (or waits for this key)."""


class AlreadyResumed(VerbError):
    """The wait was answered before."""


class AmbiguousKey(VerbError):
    """More than one interrupt of this runtime could be meant by the key."""


class RollbackIncomplete(VerbError):
    """The run has rollback failures left; `undo` repeats them, then `retry` is possible."""


class WrongStatus(VerbError):
    """The run's status does not allow the verb."""


class RollbackInProgress(WrongStatus):
    """The run is rolling back; the verb is refused meanwhile."""


class SourceLost(RewoundError):
    """A map's source was cut off before its end and takes no cursor, so it cannot go on behind its rows."""


class PayloadError(RewoundError):
    """A value cannot be stored."""


class EncodeError(PayloadError):
    """A value has a part that cannot be encoded; the message names the path and the type."""


class PayloadTooLarge(PayloadError):
    """An encoded value is larger than `max_payload`."""


class StorageError(RewoundError):
    """Storage failed, or answered what it must not; the operator should look."""


class StorageConfigError(StorageError):
    """A storage URL or a server's setting makes it unfit; the message says what to change."""


class JournalMismatch(StorageError):
    """The stored journal is not the one that its owner wrote (a failover may have lost records)."""


class ClaimLost(StorageError):
    """The run has another owner by now; this one must write nothing more."""


class ActorError(RewoundError):
    """An actor was used wrongly, or is gone."""


class ActorStopped(ActorError):
    """The actor has stopped; the message was not handled."""


class AskCycle(ActorError):
    """An actor asked itself, directly or through others; it would have waited for ever."""


class AskTimeout(ActorError, TimeoutError):
    """The reply did not come in time."""


class RuntimeClosed(RewoundError):
    """The runtime was not entered yet, or was left; it takes no work."""


class Fatal(Exception):
    """Raise from a step to fail it without any further attempt."""


class Halt(BaseException):
    """Raise from a step to end the run cleanly: status `halted`, nothing undone.

    A `BaseException`, so that a step's own `except Exception` cannot eat it.

    Args:
        reason: text that the outcome carries.
    """

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)
