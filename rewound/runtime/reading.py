"""Reading a run, wherever it lives: from its owner in this process, or from storage."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from rewound.errors import RunNotFound
from rewound.runtime.declare import Plan, decode_result, load_inputs, redacted_inputs
from rewound.runtime.engine import RunState, fold, outcome_of
from rewound.runtime.engine.records import decode_records
from rewound.runtime.node.watches import Watches
from rewound.runtime.outcomes import Outcome
from rewound.runtime.owners.run_owner import RunOwner
from rewound.runtime.owners.services import Services

T = TypeVar("T")

__all__ = ["Reader"]


class Reader:
    """Reads one run.

    Args:
        services: the node's.
        watches: for a run that lives elsewhere.
        plan: what the run runs.
        run_id: the run.
        owner: its owner, if it was spawned here just now; spares reading a short run back from storage.
    """

    def __init__(
        self, services: Services, watches: Watches, plan: Plan, run_id: str, owner: RunOwner | None = None
    ) -> None:
        self.services = services
        self.plan = plan
        self.run_id = run_id
        self._watches = watches
        self._owner = owner

    async def until(self, look: Callable[[RunState], T | None]) -> T:
        """Return what `look` makes of the run's state, as soon as that is not `None`.

        Waits for as long as it takes, without polling; a run that moves to another node is followed.
        """
        async with AsyncExitStack() as stack:
            news = stack.enter_context(self.services.waiters.listen(self.run_id))
            watched = False
            while True:
                owner = self._local_owner()
                if owner is None and not watched:
                    await stack.enter_async_context(self._watches.watching(self.run_id))
                    watched = True
                state = owner.state if owner is not None else await self.load()
                found = None if state is None else look(state)
                if found is not None:
                    return found
                await news.wait()

    def _local_owner(self) -> RunOwner | None:
        """Return the owner that lives here, or the one that has just ended here, once."""
        living = self.services.owners.get(self.run_id)
        if living is not None:
            return living
        owner, self._owner = self._owner, None
        return owner if owner is not None and owner.state is not None and owner.state.terminal else None

    async def load(self) -> RunState:
        """Read the run's state from storage. Raises `RunNotFound`."""
        journal = await self.services.storage.load(self.run_id)
        if journal is None:
            raise RunNotFound(f"run {self.run_id} does not exist, or was purged after its retention")
        return fold(self.plan, decode_records(journal.records))

    def outcome(self, state: RunState) -> Outcome[Any]:
        """Return how an ended run ended."""
        return outcome_of(self.plan, state, value=lambda: self._result(state), inputs=self._inputs(state))

    def _result(self, state: RunState) -> Any:
        return None if self.plan.returns is None else self.value_of(state, self.plan.returns)

    def value_of(self, state: RunState, step: str) -> Any:
        """Decode a completed step's result."""
        value = state.steps[step].value
        return None if value is None else decode_result(self.plan.steps[step], value)

    def _inputs(self, state: RunState) -> dict[str, Any]:
        return (
            redacted_inputs(self.plan, load_inputs(self.plan, state.inputs))
            if state.status == "failed"
            else {}
        )
