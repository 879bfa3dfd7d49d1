"""A message to a run: apply the rules of the level it reaches, then let every level conclude.

Between levels three things pass:

*   down, to a composed child in flight: its parent stops. After an undo, a cancel or the run's timeout the
    child cuts off what it has in flight; after a sibling's failure it lets that settle, but starts nothing
    more (S3). Either way, unless the run was cancelled, it takes itself back before the parent does.
*   down, to a child whose turn in the parent's rollback has come: it undoes its steps, newest first (C1).
*   up, when a child has ended: the parent's step completes, fails, halts (S6) or was cut off; or its turn
    in the rollback is over.
"""

from typing import Any, cast

from msgspec import structs

from rewound.runtime.declare import Plan
from rewound.runtime.engine import decide as rules
from rewound.runtime.engine import messages as m
from rewound.runtime.engine import records as r
from rewound.runtime.engine.changes import apply
from rewound.runtime.engine.levels import Level, Path, level_at, live_levels
from rewound.runtime.engine.outcome import first_failure
from rewound.runtime.engine.state import Phase, RunState
from rewound.runtime.outcomes import StepError

__all__ = ["advance", "next_alarm", "start", "wanted"]


def advance(plan: Plan, state: RunState, message: m.Message) -> list[r.Record]:
    """Return the records that a message leads to, and apply them to `state`."""
    turn = _Turn(plan, state)
    match message:
        case m.Verb():
            turn.verb(message)
        case m.Adopted():
            turn.adopt(message)
        case m.Stop():  # an element of a map, ended or not, is stopped as a composed child is
            turn.deliver((), message)
        case _ if state.terminal or state.status == "stuck":
            pass
        case m.Tick():
            for level in live_levels(plan, state):
                turn.deliver(level.path, message)
        case m.Opened():
            turn.open(message)
        case m.Settled() | m.HandlerDone():
            turn.deliver(message.path, message)
        case _:
            turn.deliver((), message)
    return turn.records


def start(plan: Plan, state: RunState, at: float, slots: int) -> list[r.Record]:
    """Begin ready steps, oldest first, and apply that to `state`; `slots` bounds those with a body."""
    turn = _Turn(plan, state)
    for level in live_levels(plan, state):
        for name in list(rules.startable(level.state)):
            body = rules.is_body(level.plan, name)
            if body and not slots:
                continue
            slots -= body
            turn.take(level.path, [r.Started(at, name, level.state.steps[name].attempt + 1)])
    return turn.records


def wanted(plan: Plan, state: RunState) -> int:
    """Count the bodies that could begin now, if there were slots."""
    return sum(
        rules.is_body(level.plan, name)
        for level in live_levels(plan, state)
        for name in rules.startable(level.state)
    )


def next_alarm(plan: Plan, state: RunState) -> float | None:
    """Return when the run wants its next `Tick`, or `None`."""
    if state.status == "stuck":
        return None
    alarms = (rules.next_alarm(level.plan, level.state) for level in live_levels(plan, state))
    return min((alarm for alarm in alarms if alarm is not None), default=None)


class _Turn:
    """What one message sets in motion: collects records, in the order in which they are applied."""

    def __init__(self, plan: Plan, state: RunState) -> None:
        self.root = Level((), plan, state)
        self.records: list[r.Record] = []
        self._idle = False

    def take(self, path: Path, new: list[r.Record]) -> None:
        """Apply records of a level and keep them."""
        for record in new:
            placed = r.Within(record.at, path, cast("Any", record)) if path else record
            apply(self.root.plan, self.root.state, placed)
            self.records.append(placed)

    def deliver(self, path: Path, message: m.Message) -> None:
        """Give a message to a level, then see what follows there and around it."""
        level = level_at(self.root.plan, self.root.state, path)
        if level is not None:
            self.take(path, rules.decide(level.plan, level.state, message))
            self._follow_up(level, message.at)

    def verb(self, message: m.Verb) -> None:
        """Carry out a verb. A stuck run has nothing running: what is to be cut has been cut off."""
        self._idle = self.root.state.status == "stuck"
        self.deliver((), message)
        if self._idle and message.verb == "retry":
            for level in live_levels(self.root.plan, self.root.state):
                cut = sorted(rules.doomed(level.plan, level.state))
                self.take(level.path, [r.Cut(message.at, name) for name in cut])
                self._follow_up(level, message.at)

    def open(self, message: m.Opened) -> None:
        """Begin a composed child with the inputs that were made for it."""
        parent = level_at(self.root.plan, self.root.state, message.path[:-1])
        name = message.path[-1]
        if parent is None or name in parent.state.children or parent.state.generation != message.generation:
            return
        if parent.state.steps[name].phase is Phase.STARTED:
            child = parent.plan.steps[name].child
            assert child is not None  # noqa: S101 - only composed children are opened
            opened = r.Spawned(message.at, message.inputs, child.name, child.version, None)
            self.take(message.path, [opened])
            self._follow_up(parent, message.at)

    def adopt(self, message: m.Adopted) -> None:
        """Go on with a stored run; park one that has killed its process too often."""
        levels = live_levels(self.root.plan, self.root.state)
        for level in levels:
            for name in level.state.in_flight:  # listed, not settled: begun (docs/architecture.md 5.3)
                level.state.steps[name].began = True
        if self.root.state.status == "stuck":
            return
        work = [rules.at_work(level.plan, level.state, message.at) for level in levels]
        again = [
            _spell(level, name) for level, (names, _) in zip(levels, work, strict=True) for name in names
        ]
        state = self.root.state
        if message.crashed and (again or any(ended for _, ended in work)):
            often = state.recoveries >= message.max_recoveries
            self.take((), [r.Recovered(message.at)])
            if often and again:
                reason = (
                    f"its process died {state.recoveries} times in a row while {', '.join(again)} "
                    "was in flight; mend that, then retry the run"
                )
                self.take((), [r.Parked(message.at, reason)])
                return
        for level in levels:
            self.deliver(level.path, message)

    def _follow_up(self, level: Level, at: float) -> None:
        """Let a level conclude; tell its children what it wants, and its parent how it ended."""
        if level.state.status == "stuck":
            return
        while True:
            self._tell_children(level, at)
            conclusion = rules.conclude(level.state, at)
            if conclusion is None:
                break
            self.take(level.path, [conclusion])
        if level.state.terminal and level.path:
            self._tell_parent(level, at)

    def _tell_children(self, level: Level, at: float) -> None:
        for name in sorted(level.state.in_flight):
            if level.plan.steps[name].child is not None:
                self._tell_to_stop(level, name, at)
        queue = level.state.queue
        if queue and level.state.status == "rolling_back" and queue[0][1] in level.state.children:
            self._take_back(level, queue[0][1], at)

    def _tell_to_stop(self, level: Level, name: str, at: float) -> None:
        parent, child = level.state, level.state.children.get(name)
        if parent.stop in (None, "halt"):
            return
        if child is None:
            self.take(level.path, [r.Cut(at, name)])
            return
        cancel = parent.stop == "cancel"
        obeys = child.terminal or (child.cut if parent.cut else child.stop in ("failure", "undo"))
        if obeys or (cancel and child.status == "rolling_back"):
            return
        stop = m.Stop(at, "cancel" if cancel else "undo", parent.reason, cut=parent.cut, idle=self._idle)
        self.deliver((*level.path, name), stop)

    def _take_back(self, level: Level, name: str, at: float) -> None:
        """Have a child undone as a whole; it reports when that is done."""
        if level.state.children[name].terminal:
            self.deliver((*level.path, name), m.Stop(at, "undo", level.state.reason))

    def _tell_parent(self, level: Level, at: float) -> None:
        path, name = level.path[:-1], level.path[-1]
        parent = level_at(self.root.plan, self.root.state, path)
        assert parent is not None  # noqa: S101 - a child has a parent
        state = parent.state
        if name in state.in_flight:
            result = _result_of(name, level.state)
            attempt = state.steps[name].attempt
            self.deliver(path, m.Settled(at, name, attempt, state.generation, result, path))
        elif state.queue and state.queue[0][1] == name:
            kind, attempt = state.queue[0][0], state.handler_attempt + 1
            self.deliver(path, m.HandlerDone(at, name, kind, attempt, None, state.rollbacks, path))


def _result_of(name: str, child: RunState) -> m.Result:
    """Say how a child that has ended settles its parent's step. Its value stays where it is (C1)."""
    match child.status:
        case "completed":
            return m.Success(b"")
        case "halted":
            return m.Halting(child.halt[1] if child.halt else "")
        case "failed":
            error = first_failure(child) or StepError("RewoundError", "no failure is on record", "", 0)
            return m.Failure(structs.replace(error, step=f"{name}/{error.step}" if error.step else name))
        case _:
            return m.Interrupted()


def _spell(level: Level, name: str) -> str:
    return "/".join((*level.path, name))
