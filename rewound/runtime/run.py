"""The handle on a run."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rewound.errors import DefinitionError, RunCancelled, RunFailed, RunHalted, RunNotFound, RunStuck
from rewound.runtime.deadline import within
from rewound.runtime.declare import Duration, Skipped, StepDef, SyncStepDef, seconds
from rewound.runtime.declare.children import ChildDef
from rewound.runtime.engine import RunState, first_failure
from rewound.runtime.engine.records import decode_records
from rewound.runtime.engine.state import COMPLETE
from rewound.runtime.events import RunEvent, event_of
from rewound.runtime.outcomes import Cancelled, Completed, Failed, Halted, Outcome
from rewound.runtime.progress import MapProgress
from rewound.runtime.reading import Ending, Reader

if TYPE_CHECKING:
    from rewound.runtime.runtime import Runtime

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
S = TypeVar("S")

__all__ = ["Run"]


class Run(Generic[T_co]):
    """A handle on a run. Dropping it, or cancelling whoever waits on it, does not touch the run.

    Attributes:
        id: the run's id, for `runtime.get`, logs and links.
        existing: the run was there before: its key had been used (feature A7).
        inputs_differ: it was there with other inputs, which were kept.
    """

    def __init__(
        self, runtime: "Runtime", reader: Reader, *, existing: bool = False, inputs_differ: bool = False
    ) -> None:
        self.id = reader.run_id
        self.existing = existing
        self.inputs_differ = inputs_differ
        self._runtime = runtime
        self._reader = reader

    def __repr__(self) -> str:
        return f"<Run {self._reader.plan.name} {self.id}>"

    @property
    def reactor(self) -> str:
        """The stored name of its reactor."""
        return self._reader.plan.name

    async def result(self, timeout: Duration | None = None) -> T_co:  # noqa: ASYNC109 - on the runtime's clock
        """Wait for the run's end and return its result.

        Args:
            timeout: seconds to wait at most; default for ever.

        Raises:
            RunFailed: it failed and was rolled back; `.failure` is the `Failed` outcome.
            RunHalted: a step halted it.
            RunCancelled: it was cancelled, or undone.
            RunStuck: it waits for a person.
            TimeoutError: it has not ended; the run is left alone.

        Example:
            >>> receipt = await run.result(timeout=5)
        """
        match await self.outcome(timeout):
            case Completed(value):
                return value
            case Failed() as failure:
                raise RunFailed(self.id, failure)
            case Halted(reason):
                raise RunHalted(self.id, reason)
            case Cancelled(reason):
                raise RunCancelled(self.id, reason)

    async def outcome(self, timeout: Duration | None = None) -> Outcome[T_co]:  # noqa: ASYNC109
        """Wait for the run's end and return how it ended, for a `match` statement.

        Args:
            timeout: seconds to wait at most; default for ever.

        Raises:
            RunStuck: it waits for a person.
            TimeoutError: it has not ended; the run is left alone.
        """

        def ended(state: RunState) -> Ending | RunStuck | None:
            if state.stuck is not None:
                return RunStuck(self.id, state.stuck)
            return self._reader.ending(state) if state.terminal else None

        async def wait() -> Outcome[Any] | RunStuck:
            found: Ending | RunStuck = await self._reader.until(ended)
            return found if isinstance(found, RunStuck) else await self._reader.outcome(found)

        outcome = await self._within(timeout, wait)
        if isinstance(outcome, RunStuck):
            raise outcome
        return outcome

    async def step(
        self,
        step: "StepDef[..., R | Skipped[R]] | SyncStepDef[..., R | Skipped[R]] | ChildDef[R]",
        timeout: Duration | None = None,  # noqa: ASYNC109
    ) -> R:
        """Wait for one step's result and return it; the run goes on.

        Args:
            step: such as `Checkout.reserve`. Of a step that may return `Skipped(value)` it is the value, of a
                map its `Results`.
            timeout: seconds to wait at most; default for ever.

        Raises:
            RunFailed: the step, or the run before it, failed.
            RunHalted, RunCancelled, RunStuck: the run ended, or is stuck, without that step.
            TimeoutError: it has not completed; the run is left alone.
        """
        name = step.name
        if name not in self._reader.plan.steps:
            raise DefinitionError(f"{self.reactor} has no step {name!r}")

        def settled(state: RunState) -> tuple[bool, Any] | None:
            if state.steps[name].phase in COMPLETE:
                return True, self._reader.value_of(state, name)
            over = state.terminal or state.stuck is not None or first_failure(state) is not None
            return (False, None) if over else None

        completed, value = await self._within(timeout, partial(self._reader.until, settled))
        if completed:
            result: R = value
            return result
        await self.result(timeout)
        return await self.step(step, timeout)  # it was retried meanwhile, and has completed

    async def status(self) -> str:
        """Return the run's status as storage has it. Raises `RunNotFound`."""
        journal = await self._reader.services.storage.load(self.id, limit=0)
        if journal is None:
            raise RunNotFound(f"run {self.id} does not exist, or was purged after its retention")
        return journal.head.status

    async def maps(self) -> dict[str, MapProgress]:
        """Return how far the run's maps have come, by name; one of a composed child as `audit/checks`.

        Maps that have not begun are left out, and so are those inside elements.

        Raises:
            RunNotFound: the run does not exist, or was purged.

        Example:
            >>> back = (await run.maps())["charges"].rollback
            >>> f"{back.settled} of {back.total} taken back, {back.failed} failed"
            '1990 of 2000 taken back, 1 failed'
        """
        return await self._reader.maps()

    async def events(self) -> AsyncIterator[RunEvent]:
        """Iterate over everything that is recorded about the run, from its first event to its end.

        Ends when the run has ended or is stuck; a run that is undone later has more to tell then.
        """
        seen, services = 0, self._reader.services
        with services.waiters.listen(self.id) as news:
            async with self._reader.watching():
                while True:
                    journal = await services.storage.load(self.id, start=seen)
                    if journal is None:
                        raise RunNotFound(f"run {self.id} does not exist, or was purged after its retention")
                    for record in decode_records(journal.records):
                        yield event_of(record)
                    seen += len(journal.records)
                    if journal.head.terminal or journal.head.status == "stuck":
                        return
                    await news.wait()

    async def undo(self, reason: str = "") -> None:
        """Take the run back; as `Runtime.undo`."""
        await self._runtime.undo(self.id, reason=reason)

    async def cancel(self, reason: str = "") -> None:
        """Stop the run and undo nothing; as `Runtime.cancel`."""
        await self._runtime.cancel(self.id, reason=reason)

    async def retry(self) -> None:
        """Start a rolled-back run again, or let a stuck one go on; as `Runtime.retry`."""
        await self._runtime.retry(self.id)

    async def _within(self, timeout: Duration | None, wait: Callable[[], Awaitable[S]]) -> S:  # noqa: ASYNC109
        limit = None if timeout is None else seconds(timeout, "timeout", zero=True)
        try:
            return await within(self._reader.services.clock, limit, wait)
        except TimeoutError:
            raise TimeoutError(
                f"run {self.id} of {self.reactor} did not get there within {limit:g} s; it goes on"
            ) from None
