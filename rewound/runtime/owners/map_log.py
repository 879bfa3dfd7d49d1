"""What a map says in the log: elements that failed, and its rollback (R11)."""

import logging
from typing import Any

from rewound.runtime.engine.mapping import MapHead, Outcome
from rewound.runtime.logs import log_event
from rewound.runtime.outcomes import StepError
from rewound.runtime.owners.maps import MapContext

__all__ = ["tell_back", "tell_element", "tell_failed", "tell_opened"]


def tell_failed(context: MapContext, index: int, error: StepError) -> None:
    """Say why an element failed; it has taken itself back."""
    told: dict[str, Any] = {"step": error.step or None, "error": error.type, "reason": error.message}
    log_event("rewound.map.element.failed", logging.WARNING, **_names(context), index=index, **told)


def tell_opened(context: MapContext, head: MapHead) -> None:
    """Say that a map's rollback begins."""
    batch_size = context.plan.batch_size
    log_event("rewound.map.rollback.started", **_names(context), total=head.started, batch_size=batch_size)


def tell_element(context: MapContext, index: int, outcome: Outcome, failures: int) -> None:
    """Say how one element ended in it."""
    level = logging.WARNING if outcome in (Outcome.FAILED, Outcome.UNAVAILABLE) else logging.DEBUG
    log_event(
        "rewound.map.rollback.element",
        level,
        **_names(context),
        index=index,
        outcome=outcome.name.lower(),
        failures=failures,
    )


def tell_back(context: MapContext, head: MapHead) -> None:
    """Say that a map has been taken back."""
    log_event("rewound.map.rollback.completed", **_names(context), total=head.started, failed=head.left)


def _names(context: MapContext) -> dict[str, Any]:
    return {"reactor": context.level.plan.name, "run": context.run_id, "map": "/".join(context.path)}
