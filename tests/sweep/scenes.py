"""The scenarios of docs/rules.md section 8 as programs that a sweep crashes."""

import contextlib
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from rewound import Cancelled, Failed, Reactor, Run, Runtime, VerbError
from rewound.testing import Ledger, Scenario

__all__ = [
    "Retried",
    "Spawned",
    "UndoneAtEnd",
    "UndoneOnTheWay",
    "at_most",
    "failures",
    "in_order",
    "stands",
    "taken_back",
]

Check = Callable[[Any, Ledger], None]


class Spawned(Scenario):
    """Spawn a run and wait for its end.

    Args:
        reactor: the run's inputs.
        checks: what must hold at the end.
        may_vary: the outcome need only be of the same class, because it depends on who was first.
    """

    def __init__(self, reactor: Reactor[Any], *checks: Check, may_vary: bool = False) -> None:
        self.reactor = reactor
        self.reactors = [type(reactor)]  # type: ignore[misc]  # one scenario for many reactors
        self.checks = checks
        self.may_vary = may_vary

    async def spawn(self, runtime: Runtime) -> Run[Any]:
        """Spawn the run, or find it."""
        run: Run[Any] = await runtime.spawn(self.reactor, key="only")
        return run

    async def play(self, runtime: Runtime, ledger: Ledger) -> object:
        """Spawn and wait."""
        return await (await self.spawn(runtime)).outcome()

    def allows(self, answer: object, expected: object) -> bool:
        """Compare the outcomes, or their classes."""
        return type(answer) is type(expected) if self.may_vary else super().allows(answer, expected)

    def check(self, answer: object, ledger: Ledger) -> None:
        """Make the checks."""
        for check in self.checks:
            check(answer, ledger)


class UndoneAtEnd(Spawned):
    """Let a run complete, and undo it by hand."""

    async def play(self, runtime: Runtime, ledger: Ledger) -> object:
        """Spawn, wait, undo; an undo that went through before the crash is refused."""
        run = await self.spawn(runtime)
        await run.outcome()
        with contextlib.suppress(VerbError):
            await run.undo("by hand")
        return await run.outcome()


class UndoneOnTheWay(Spawned):
    """Undo a run by hand once a step has begun."""

    def __init__(self, reactor: Reactor[Any], *checks: Check, after: str) -> None:
        super().__init__(reactor, *checks)
        self.after = after

    async def play(self, runtime: Runtime, ledger: Ledger) -> object:
        """Spawn, wait, undo."""
        run = await self.spawn(runtime)
        await ledger.began(self.after)
        with contextlib.suppress(VerbError):
            await run.undo("by hand")
        return await run.outcome()


class Retried(Spawned):
    """Let a run fail while the world is broken, mend the world, and retry the run."""

    async def play(self, runtime: Runtime, ledger: Ledger) -> object:
        """Spawn, wait, mend, retry."""
        ledger.world.setdefault("broken", True)
        run = await self.spawn(runtime)
        outcome = await run.outcome()
        if isinstance(outcome, Failed):
            ledger.world["broken"] = False
            with contextlib.suppress(VerbError):
                await run.retry()
            outcome = await run.outcome()
        return outcome


# -- checks


def taken_back(answer: object, ledger: Ledger) -> None:
    """Everything was taken back."""
    assert isinstance(answer, Failed | Cancelled)
    assert ledger.standing() == set()


def stands(*paths: str) -> Check:
    """Everything was taken back, but for these steps."""

    def check(answer: object, ledger: Ledger) -> None:
        assert ledger.standing() == set(paths)

    return check


def at_most(count: int, under: str) -> Check:
    """No more elements than so many were in flight at once (M1, R1)."""

    def check(answer: object, ledger: Ledger) -> None:
        assert ledger.most_in_flight(under) <= count

    return check


def in_order(*groups: str) -> Check:
    """Handlers of one group end before those of the next (S4, R7, C3). A group is the start of a path."""

    def check(answer: object, ledger: Ledger) -> None:
        order = [*ledger.paths("undo"), *ledger.paths("compensate")]
        places = _places(groups, order, ledger)
        assert all(not one or not two or max(one) < min(two) for one, two in pairwise(places))

    return check


def _places(groups: Iterable[str], paths: list[str], ledger: Ledger) -> list[list[int]]:
    ends = {
        entry.path: entry.last
        for entry in ledger.entries
        if entry.kind != "forward" and entry.end == "returned" and entry.path in paths
    }
    return [[end for path, end in ends.items() if path.startswith(group)] for group in groups]


def failures(*places: tuple[str, int]) -> Check:
    """The outcome names these failures of undos, each once: the map and the element (R5, C4)."""

    def check(answer: Any, ledger: Ledger) -> None:
        told = [(each.map_step, each.element_index) for each in answer.rollback_failures]
        assert sorted(told) == sorted(places)

    return check
