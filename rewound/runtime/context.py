"""What a running step is told about itself: the `Context` it may take as `ctx`."""

import hashlib
import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Generic, Literal

from msgspec import Struct

if TYPE_CHECKING:
    # a default for a type variable is 3.13; checkers read it here, at run time it is not needed
    from typing_extensions import TypeVar

    State = TypeVar("State", default=Any)
else:
    from typing import TypeVar

    State = TypeVar("State")

__all__ = ["Context", "Kind", "StepLog", "idempotency_key"]

Kind = Literal["forward", "undo", "compensate", "undo_all"]

_LONGEST_KEY = 200  # payment services cut or refuse longer ones (255 is common)

_LOGGER = logging.getLogger("rewound.step")


class StepLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records carry the run, the step and the attempt, beside the caller's own `extra`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the step's fields to the record; those the caller gave win."""
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class Context(Struct, Generic[State], frozen=True, kw_only=True):
    """What a step, undo or compensate is told when it takes a parameter named `ctx`.

    Every field has a default, so that a unit test may call a step with a bare `Context()`.

    Args:
        run_id: the run.
        step: the step, also in its undo and compensate.
        attempt: which attempt this is, counted from 1.
        idempotency_key: stable across attempts, crashes and takeovers; another one for the undo and
            for the compensate; a new one when a rolled-back run is retried. Hand it to services that
            promise to do a thing once per key.
        state: what the application put on the runtime (`Runtime(state=...)`).

    Example:
        >>> Context(run_id="r1", step="charge").attempt
        1
    """

    run_id: str = ""
    step: str = ""
    attempt: int = 1
    idempotency_key: str = ""
    state: State = None  # type: ignore[assignment]  # a test without state may leave it out

    @property
    def log(self) -> StepLog:
        """The logger `rewound.step`; its records carry `run_id`, `step` and `attempt`."""
        return StepLog(_LOGGER, {"run_id": self.run_id, "step": self.step, "attempt": self.attempt})


def idempotency_key(run_id: str, path: str, generation: int, kind: Kind, element: int | None = None) -> str:
    """Make the key under which a step's outside effect counts once.

    Args:
        run_id: the run.
        path: the step, or the path to it in a child, such as `billing/charge`.
        generation: how often the run was started over by `retry`, counted from 0.
        kind: the step itself, its undo, its compensate, or a map's `undo_all`.
        element: the index in a map, if the step belongs to an element.

    Returns:
        Printable ASCII of at most 200 characters, fit for an HTTP header. The same arguments always
        give the same key, different ones different keys.

    Example:
        >>> idempotency_key("r1", "charge", 0, "undo")
        'r1:charge:0:undo'
    """
    key = f"{run_id}:{path}:{generation}:{kind}"
    if element is not None:
        key = f"{key}:{element}"
    if len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable():
        return key
    # too long or not ASCII: the readable beginning, made unique by a hash of the whole
    start = "".join(char if char.isascii() and char.isprintable() else "_" for char in key[:100])
    return f"{start}:{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()}"
