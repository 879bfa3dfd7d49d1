"""One crash of a sweep, and what must hold after it."""

from typing import Any, Literal

from rewound import Reactor, plan_of
from rewound.actors import VirtualClock
from rewound.storage import Fault, Head, MemoryStorage, Query
from rewound.testing.ledger import Ledger
from rewound.testing.life import Life
from rewound.testing.link import Link
from rewound.testing.proof import check_repeats, check_undone
from rewound.testing.scenario import Scenario

__all__ = ["Trial"]


class Trial:
    """A storage, a clock and a ledger, and the processes on them.

    Args:
        scenario: what they play.
        limit: seconds of the virtual clock for each.

    Attributes:
        trace: the operations of the first process.
        ledger: what bodies did.
        answer: what came of it.
    """

    def __init__(self, scenario: Scenario, limit: float) -> None:
        self.clock = VirtualClock()
        self.ledger = Ledger(self.clock)
        self.trace: list[str] = []
        self.answer: object = None
        self._scenario = scenario
        self._limit = limit
        self._memory = MemoryStorage(clock=self.clock.time)

    async def without_crash(self) -> None:
        """Play the scenario once and see that all is well."""
        link = Link(self._memory)
        await self._end(link)
        self.trace = link.trace
        self._scenario.check(self.answer, self.ledger)

    async def crash(self, at: int, when: Literal["before", "after", "late"], whole: "Trial") -> bool:
        """Crash at an operation, recover, check. Return whether the crash happened.

        Args:
            at: the number of the operation.
            when: before it, after it, or so that it arrives late.
            whole: the trial without a crash.

        Raises:
            AssertionError: something does not hold.
        """
        if when == "late":
            link = Link(self._memory, hold=at)
        else:
            link = Link(self._memory, [Fault("crash", at=at, when=when)])
        first = Life(self._scenario, self.clock, self.ledger, link)
        await first.live(self._limit)
        if first.died is None:
            return False
        try:
            await self._recover(link, first.died, whole)
        except Exception as error:  # whatever a recovery raises, a crash led to it
            raise AssertionError(
                f"{type(self._scenario).__name__}: crashed {_spell(at, when, link.trace)}: {_told(error)}"
            ) from error
        return True

    async def _recover(self, link: Link, died: float, whole: "Trial") -> None:
        late = link.held
        second = Link(self._memory, late=late)
        heads = await self._end(second)
        if late is not None and late.taken and len(heads) == 1:
            raise AssertionError(f"the late {late.name} of a node that had lost its run was carried out")
        if not self._scenario.allows(self.answer, whole.answer):
            raise AssertionError(f"what came of it is {self.answer!r}; without a crash: {whole.answer!r}")
        check_repeats(self.ledger.entries, whole.ledger.entries, died, self._reactors(heads))
        check_undone(self.ledger.entries, whole.ledger.entries, died)
        self._scenario.check(self.answer, self.ledger)

    async def _end(self, link: Link) -> list[Head]:
        """Play to the end, and see that every run got there and nobody holds one."""
        life = Life(self._scenario, self.clock, self.ledger, link)
        await life.live(self._limit)
        heads = await self._heads()
        if not life.played:
            told = ", ".join(f"{_name(head)} is {head.status}" for head in heads) or "there are no runs"
            raise AssertionError(f"the scenario does not end within {self._limit:g} s: {told}")
        self.answer = life.answer
        for head in heads:
            if not head.terminal:
                raise AssertionError(f"{_name(head)} is still {head.status}")
            if head.node is not None:
                raise AssertionError(f"{_name(head)} is still owned by node {head.node}")
        return heads

    async def _heads(self) -> list[Head]:
        heads: list[Head] = []
        cursor: str | None = None
        while True:
            page = await self._memory.runs(Query(), cursor)
            heads += page.heads
            cursor = page.cursor
            if cursor is None:
                return heads

    def _reactors(self, heads: list[Head]) -> dict[str, type[Reactor[Any]]]:
        known = {plan_of(reactor).name: reactor for reactor in self._scenario.reactors}
        return {head.run_id: known[head.reactor] for head in heads}


def _name(head: Head) -> str:
    return f"{head.reactor} {head.run_id}"


def _told(error: Exception) -> str:
    members: tuple[Exception, ...] = getattr(error, "exceptions", ())
    if isinstance(error, ExceptionGroup):
        return "; ".join(map(_told, members))
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"


def _spell(at: int, when: str, trace: list[str]) -> str:
    what = f"{trace[-1] if at > len(trace) else trace[at - 1]} (operation {at})"
    return f"so that its {what} came late" if when == "late" else f"{when} {what}"
