"""Reading a map's elements: their values, their outcomes, their rollback failures."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from rewound.errors import PayloadError, StorageError
from rewound.runtime.declare import Plan, StepPlan
from rewound.runtime.engine import RunState, first_failure, fold
from rewound.runtime.engine.mapping import MapHead, decode_cell, decode_head
from rewound.runtime.engine.records import Record, Spawned
from rewound.runtime.outcomes import ElementOutcome, RollbackFailure, StepError
from rewound.runtime.owners.asides import Aside
from rewound.runtime.owners.values import Site, Values, space_of
from rewound.runtime.results import Results
from rewound.storage.protocol import Storage

__all__ = ["ElementReader", "element_value", "failures_of", "head_of", "results_of"]

PAGE = 100

_asides = msgspec.msgpack.Decoder(Aside)


def state_of(plan: Plan, records: list[Record]) -> RunState:
    """Add up what is stored of an element."""
    return fold(plan, [Spawned(0.0, b"", plan.name, plan.version, None), *records])


def element_value(site: Site, plan: Plan, records: list[Record], *, missing: Any = None) -> Any:
    """Decode the value of an element that completed, also if it was taken back; of any other, `missing`."""
    state = state_of(plan, records)
    if state.open_steps:
        return missing
    return None if plan.returns is None else Values(site, state).read(plan, state, plan.returns)


def results_of(
    site: Site, step: StepPlan, total: int, broken: Callable[[StorageError], object] | None
) -> Results[Any]:
    """Return the results of a map; `site` leads to the map itself, `broken` as for `ElementReader`."""
    assert step.map is not None  # noqa: S101 - only maps have such results
    return Results(ElementReader(site, step.map.child, total=total, broken=broken))


async def head_of(storage: Storage, run_id: str, space: str) -> MapHead | None:
    """Read what a map's elements add up to."""
    found = await storage.space(run_id, space, count=0)
    return decode_head(found.header) if found is not None and found.header else None


class ElementReader:
    """Reads a map's elements by page, for `Results`.

    Args:
        site: leads to the map.
        plan: what the elements run.
        total: how many there are.
        broken: told of a storage that cannot be read, beside whoever reads.
    """

    def __init__(
        self,
        site: Site,
        plan: Plan,
        *,
        total: int,
        broken: Callable[[StorageError], object] | None = None,
    ) -> None:
        self._site = site
        self._plan = plan
        self._broken = broken
        self.total = total

    async def page(self, start: int, count: int) -> list[ElementOutcome[Any]]:
        """Read the outcomes from `start` on, at most `count`. Raises `PayloadError` if one is gone."""
        cells = await self._cells(start, count)
        return [
            self._outcome(index, cells.get(index)) for index in range(start, min(start + count, self.total))
        ]

    async def _cells(self, start: int, count: int) -> Mapping[int, bytes]:
        site = self._site
        space = space_of(site.generation or 0, site.prefix)
        try:
            found = await site.storage.space(site.run_id, space, start, count)
        except StorageError as error:
            if self._broken is not None:
                self._broken(error)
            raise
        return found.cells if found else {}

    def _outcome(self, index: int, raw: bytes | None) -> ElementOutcome[Any]:
        if raw is None:
            path = "/".join(self._site.prefix)
            raise PayloadError(f"element {index} of {path} has no record any more: storage has lost it")
        state = state_of(self._plan, decode_cell(raw)[0])
        failures = state.rollback_failures
        match state.status:
            case _ if not state.open_steps:  # also if it was taken back since: its value is not
                return ElementOutcome(index, "completed", self._value(index, state), None, failures)
            case "failed":
                return ElementOutcome(index, "failed", None, first_failure(state), failures)
            case "halted":
                step, reason = state.halt or ("", "")
                return ElementOutcome(index, "halted", None, StepError("Halt", reason, step), failures)
            case _:
                return ElementOutcome(index, "skipped", None, None, failures)

    def _value(self, index: int, state: RunState) -> Any:
        returns = self._plan.returns
        site = msgspec.structs.replace(self._site, prefix=(*self._site.prefix, str(index)))
        return None if returns is None else Values(site, state).read(self._plan, state, returns)


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
