"""Reading a run, wherever it lives: from its owner in this process, or from storage."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from rewound.errors import InputError, RewoundError, RunNotFound, StorageError
from rewound.runtime.declare import (
    ONCE,
    Call,
    Plan,
    Shape,
    StepPlan,
    load_inputs,
    redacted_inputs,
)
from rewound.runtime.engine import Path, RunState, fold, outcome_of
from rewound.runtime.engine.mapping import MapHead
from rewound.runtime.engine.records import Parked, Record, Spawned, decode_records
from rewound.runtime.engine.state import StepState
from rewound.runtime.node.watches import Watches
from rewound.runtime.outcomes import Outcome
from rewound.runtime.owners.asides import spaces_with_failures
from rewound.runtime.owners.readers import failures_of, head_of
from rewound.runtime.owners.run_owner import RunOwner
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.values import Site, Values, space_of
from rewound.runtime.progress import MapProgress, RollbackProgress
from rewound.runtime.waiters import Listener
from rewound.storage.protocol import Journal

T = TypeVar("T")

__all__ = ["Ending", "Reader"]


class Ending(Struct, frozen=True):
    """How a run ended.

    Args:
        outcome: its outcome, so far as its own records tell it.
        spaces: where the rollback failures of its maps' elements are.
    """

    outcome: Outcome[Any]
    spaces: list[str]


class Reader:
    """Reads one run.

    Args:
        services: the node's.
        watches: for a run that lives elsewhere.
        plan: what the run runs.
        run_id: the run.
    """

    def __init__(self, services: Services, watches: Watches, plan: Plan, run_id: str) -> None:
        self.services = services
        self.plan = plan
        self.run_id = run_id
        self._watches = watches

    async def until(self, look: Callable[[RunState], T | None]) -> T:
        """Return what `look` makes of the run's state, as soon as that is not `None`.

        Waits for as long as it takes, without polling; a run that moves to another node is followed.

        Raises:
            RunNotFound: the run is not in storage.
            RuntimeClosed: the runtime was closed meanwhile.
        """

        def worthwhile() -> bool:
            owner = self.services.owners.get(self.run_id)
            try:
                return owner is None or owner.state is None or look(owner.state) is not None
            except Exception:  # noqa: BLE001 - it must reach the waiter, not the owner that called
                return True

        with self.services.waiters.listen(self.run_id, worthwhile) as news:
            found = await self._follow(look, news)
            if found is not None:
                return found
            async with self.watching():
                return await self._watch(look, news)

    async def _follow(self, look: Callable[[RunState], T | None], news: Listener) -> T | None:
        """Look at the run while it lives here; return `None` when it does not any more."""
        followed: RunOwner | None = None
        while True:
            living = self.services.owners.get(self.run_id)
            owner = living or _ended(followed)
            if owner is None:
                return None
            found = None if owner.state is None else look(owner.state)
            if found is not None:
                return found
            followed = living
            await news.wait()

    async def _watch(self, look: Callable[[RunState], T | None], news: Listener) -> T:
        """Look at the run wherever it lives."""
        while True:
            owner = self.services.owners.get(self.run_id)
            state = owner.state if owner is not None else await self.load()
            found = None if state is None else look(state)
            if found is not None:
                return found
            await news.wait()

    async def load(self) -> RunState:
        """Read the run's state from storage.

        Raises:
            RunNotFound: it is not there.
            StorageError: it cannot be reached, or read by this version.
        """
        journal = await self.services.storage.load(self.run_id)
        if journal is None:
            raise RunNotFound(f"run {self.run_id} does not exist, or was purged after its retention")
        try:
            return self._fold(journal)
        except (RewoundError, LookupError, msgspec.MsgspecError) as error:
            if journal.head.status == "stuck":
                return _stuck(self.plan, journal.records)
            raise StorageError(
                f"run {self.run_id} cannot be read by this version of {self.plan.name}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _fold(self, journal: Journal) -> RunState:
        records = decode_records(journal.records)
        same = journal.head.fingerprint == self.plan.fingerprint
        return fold(self.plan if same else _widened(self.plan, records), records)

    def watching(self) -> AbstractAsyncContextManager[None]:
        """Have changes of the run reported to this node for the length of the block."""
        return self._watches.watching(self.run_id)

    def ending(self, state: RunState) -> Ending:
        """Return how an ended run ended, and where the rest of its rollback failures are."""
        outcome = outcome_of(self.plan, state, value=lambda: self._result(state), inputs=self._inputs(state))
        return Ending(outcome, spaces_with_failures(state, state.generation))

    async def outcome(self, ending: Ending) -> Outcome[Any]:
        """Return the outcome with every rollback failure; those of elements are read from storage (R5)."""
        storage, own = self.services.storage, ending.outcome.rollback_failures
        others = [
            failure for space in ending.spaces async for failure in failures_of(storage, self.run_id, space)
        ]
        if not others:
            return ending.outcome
        return msgspec.structs.replace(ending.outcome, rollback_failures=[*own, *others])

    async def maps(self) -> dict[str, MapProgress]:
        """Read how far each map has come, by its path; those that have not begun are left out.

        Raises:
            RunNotFound: the run is not in storage.
        """
        (generation,) = await self.until(lambda state: (state.generation,))
        progress: dict[str, MapProgress] = {}
        for path in _maps_in(self.plan):
            head = await head_of(self.services.storage, self.run_id, space_of(generation, path))
            if head is not None:
                progress["/".join(path)] = _progress(head)
        return progress

    def _result(self, state: RunState) -> Any:
        return None if self.plan.returns is None else self.value_of(state, self.plan.returns)

    def value_of(self, state: RunState, step: str) -> Any:
        """Decode a completed step's result."""
        site = Site(self.services.storage, self.run_id)
        return Values(site, state).read(self.plan, state, step)

    def _inputs(self, state: RunState) -> dict[str, Any]:
        if state.status != "failed":
            return {}
        try:
            return redacted_inputs(self.plan, load_inputs(self.plan, state.inputs))
        except InputError:  # another version's; what is secret in them is not known
            return {}


def _maps_in(plan: Plan, path: Path = ()) -> Iterator[Path]:
    """Walk over the maps of a reactor and of what it composes."""
    for name, step in plan.steps.items():
        if step.map is not None:
            yield (*path, name)
        elif step.child is not None:
            yield from _maps_in(step.child, (*path, name))


def _progress(head: MapHead) -> MapProgress:
    back = RollbackProgress(head.started, head.rolled, head.left) if head.rollback else None
    return MapProgress(head.total, head.started, head.settled, head.failed, back)


def _ended(owner: RunOwner | None) -> RunOwner | None:
    """Return the owner that was followed until now if it saw the run's end: storage need not be asked."""
    return owner if owner is not None and owner.state is not None and owner.state.terminal else None


def _stuck(plan: Plan, records: list[bytes]) -> RunState:
    """Tell no more of a run that cannot be read than why it is stuck: whoever parked it wrote that."""
    reason = "it cannot be read"
    for raw in reversed(records):
        with suppress(RewoundError):
            (record,) = decode_records([raw])
            if isinstance(record, Parked):
                reason = record.reason
                break
    return RunState(status="stuck", stuck=reason, steps={name: StepState(0) for name in plan.steps})


_plain = msgspec.msgpack.Decoder().decode


def _widened(plan: Plan, records: list[Record]) -> Plan:
    """Add the steps of the version that wrote a journal, so that what they did can be read."""
    spawned = next((record for record in records if isinstance(record, Spawned)), None)
    _, old = msgspec.convert(spawned.shape if spawned else ((), ()), Shape)
    steps = {name: _bygone(plan, name, needs) for name, needs, _ in old if name not in plan.steps}
    return msgspec.structs.replace(plan, steps=plan.steps | steps)


def _bygone(plan: Plan, name: str, needs: tuple[str, ...]) -> StepPlan:
    return StepPlan(
        name=name,
        label=f"{plan.name}.{name}",
        needs=needs,
        retry=ONCE,
        timeout=None,
        cancel_on_failure=False,
        guards=(),
        call=Call(lambda: None, is_async=False),
        undo=None,
        compensate=None,
        returns=Any,
        decode=_plain,
        loose=False,
    )
