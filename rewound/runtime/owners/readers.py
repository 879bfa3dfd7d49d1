"""Reading a map's elements: their values, their outcomes, their rollback failures."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from rewound.runtime.declare import Plan
from rewound.runtime.engine import RunState, first_failure, fold
from rewound.runtime.engine.mapping import MapHead, decode_cell, decode_head
from rewound.runtime.engine.records import Record, Spawned
from rewound.runtime.outcomes import ElementOutcome, RollbackFailure
from rewound.runtime.owners.flight import Aside
from rewound.runtime.owners.values import value_of
from rewound.storage.protocol import Storage

__all__ = ["ElementReader", "element_value", "failures_of", "head_of"]

PAGE = 100

_asides = msgspec.msgpack.Decoder(Aside)


def state_of(plan: Plan, records: list[Record]) -> RunState:
    """Add up what is stored of an element."""
    return fold(plan, [Spawned(0.0, b"", plan.name, plan.version, None), *records])


def element_value(plan: Plan, records: list[Record], *, missing: Any = None) -> Any:
    """Decode the value of an element that completed; of any other, return `missing`."""
    state = state_of(plan, records)
    if state.open_steps or state.status not in ("completed", "cancelled"):
        return missing
    return None if plan.returns is None else value_of(plan, state, plan.returns)


async def head_of(storage: Storage, run_id: str, space: str) -> MapHead | None:
    """Read what a map's elements add up to."""
    found = await storage.space(run_id, space)
    return None if found is None else decode_head(found.header)


class ElementReader:
    """Reads a map's elements by page, for `Results`.

    Args:
        storage: where they are.
        run_id: the run.
        space: the map's space.
        plan: what the elements run.
        total: how many there are.
    """

    def __init__(self, storage: Storage, run_id: str, space: str, plan: Plan, *, total: int) -> None:
        self._storage = storage
        self._run_id = run_id
        self._space = space
        self._plan = plan
        self.total = total

    async def page(self, start: int, count: int) -> list[ElementOutcome[Any]]:
        """Read the outcomes from `start` on, at most `count` of them."""
        found = await self._storage.space(self._run_id, self._space, start, count)
        cells = found.cells if found else {}
        return [
            self._outcome(index, cells.get(index)) for index in range(start, min(start + count, self.total))
        ]

    def _outcome(self, index: int, raw: bytes | None) -> ElementOutcome[Any]:
        if raw is None:
            return ElementOutcome(index, "skipped")
        state = state_of(self._plan, decode_cell(raw)[0])
        failures = state.rollback_failures
        match state.status:
            case "completed":
                value = (
                    None if self._plan.returns is None else value_of(self._plan, state, self._plan.returns)
                )
                return ElementOutcome(index, "completed", value, None, failures)
            case "failed":
                return ElementOutcome(index, "failed", None, first_failure(state), failures)
            case "halted":
                return ElementOutcome(index, "halted", None, None, failures)
            case _:
                return ElementOutcome(index, "skipped", None, None, failures)


async def failures_of(storage: Storage, run_id: str, space: str) -> AsyncIterator[RollbackFailure]:
    """Read the rollback failures of a map's elements, in index order, those of maps inside them too."""
    head = await head_of(storage, run_id, space)
    for start in range(0, head.started if head else 0, PAGE):
        found = await storage.space(run_id, f"{space}!", start, PAGE)
        for _, raw in sorted((found.cells if found else {}).items()):
            aside = _asides.decode(raw)
            for failure in aside.failures:
                yield failure
            for nested in aside.nested:
                async for failure in failures_of(storage, run_id, nested):
                    yield failure
