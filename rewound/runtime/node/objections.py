"""Runs that this node's version of a reactor cannot go on with: other nodes get two leases to take them."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from rewound.errors import RewoundError
from rewound.runtime.declare import Plan, compatible
from rewound.runtime.engine.records import (
    FORMAT,
    Failed,
    Halted,
    Record,
    Spawned,
    Started,
    Succeeded,
    decode_records,
)
from rewound.runtime.owners.services import Services
from rewound.storage.protocol import Head

__all__ = ["Objections", "objection_to"]

PATIENCE = 2
"""Leases in which another node may take a run before it is parked as stuck."""


class _Objection(Struct):
    """Why a run is not taken, since when it was unowned for all we saw, and when it was last seen so."""

    reason: str
    since: float
    seen: float


class Objections:
    """What this node objects to, and for how long nobody else has taken that.

    Args:
        services: the node's; its `refusals` are objections, too.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, _Objection] = {}

    async def to(self, head: Head, plan: Plan) -> str:
        """Say why this node cannot go on with a run; empty if it can."""
        return self.standing(head.run_id) or self._note(head.run_id, await self._examine(head, plan))

    def standing(self, run_id: str) -> str:
        """Say what is known already to speak against a run."""
        known = self._recall(run_id)
        return self._note(run_id, self._services.refusals.pop(run_id, "")) if known is None else known.reason

    def _note(self, run_id: str, reason: str) -> str:
        if reason:
            now = self._services.clock.now()
            self._known[run_id] = _Objection(reason, now, now)
        return reason

    def is_ripe(self, run_id: str) -> bool:
        """Whether every node has had two leases to take the run; if so, it is forgotten here."""
        known = self._known[run_id]
        ripe = known.seen - known.since >= PATIENCE * self._services.settings.lease
        if ripe:
            del self._known[run_id]
        return ripe

    def _recall(self, run_id: str) -> _Objection | None:
        """Find an objection to a run that has been unowned ever since, as far as the sweeps can tell."""
        now = self._services.clock.now()
        lease = self._services.settings.lease
        for each in [
            each for each, known in self._known.items() if now - known.seen > lease
        ]:  # somebody had it meanwhile: what comes back is examined afresh
            del self._known[each]
        known = self._known.get(run_id)
        if known is not None:
            known.seen = now
        return known

    async def _examine(self, head: Head, plan: Plan) -> str:
        if head.format > FORMAT:
            return f"its records are of format {head.format}, this version reads {FORMAT}"
        if head.fingerprint == plan.fingerprint:
            return ""
        journal = await self._services.storage.load(head.run_id)
        return "" if journal is None else objection_to(journal.records, plan)


def objection_to(journal: Iterable[bytes], plan: Plan) -> str:
    """Say what keeps a run that another version wrote from going on with this plan; empty: nothing."""
    try:
        records = decode_records(journal)
        spawned = next((record for record in records if isinstance(record, Spawned)), None)
        if spawned is None:
            return "its journal does not begin with its inputs"
        completed = {record.step for record in records if isinstance(record, Succeeded)}
        differences = compatible(spawned.shape, plan, completed)
    except (RewoundError, msgspec.MsgspecError) as error:
        return f"{type(error).__name__}: {error}"
    return "; ".join([*differences, *_begun_differently(records, plan, completed)])


def _begun_differently(records: Iterable[Record], plan: Plan, completed: set[str]) -> list[str]:
    """Compare the steps that began and have not completed: they must exist, and have what they need."""
    begun = {record.step for record in records if isinstance(record, Started | Failed | Halted)} - completed
    lines: list[str] = []
    for name in sorted(begun):
        step = plan.steps.get(name)
        if step is None:
            lines.append(f"step {name!r} has begun, and {plan.name} has no such step any more")
        else:
            missing = [need for need in step.needs if need not in completed]
            lines += [f"step {name!r} has begun, and now depends on {need!r}" for need in missing]
    return lines
