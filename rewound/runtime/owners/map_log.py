"""What a map's rollback says in the log (R11)."""

import logging
from typing import Any

from rewound.runtime.engine.mapping import MapHead, Outcome
from rewound.runtime.logs import log_event
from rewound.runtime.owners.maps import MapContext

__all__ = ["tell_back", "tell_element", "tell_opened"]


def tell_opened(context: MapContext, head: MapHead, batch_size: int) -> None:
    """Say that a map's rollback goes on or begins."""
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
