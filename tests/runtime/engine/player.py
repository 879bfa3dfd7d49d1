"""Plays a random history on one run, and checks after every batch what must always hold."""

from typing import Any

from msgspec.structs import replace

from rewound.runtime.declare import Plan
from rewound.runtime.engine import RunState, fold, level_at, next_alarm, refusal
from rewound.runtime.engine import messages as m
from rewound.runtime.engine import records as r
from tests.runtime.engine.referee import Referee
from tests.runtime.engine.strategies import Kind, Move, Setting
from tests.runtime.engine.world import Death, World, error_of

__all__ = ["Player"]

_MOST_MOVES_TO_END = 500
_DEATHS: dict[Kind, Death] = {"die before commit": "before commit", "die after commit": "after commit"}


class Player:
    """One run and its referee.

    Args:
        plan: what runs.
        setting: in what circumstances.

    Attributes:
        outbox: what bodies have reported and nobody has handled yet.
        handled: reports that led to records; each may come again.
    """

    def __init__(self, plan: Plan, setting: Setting) -> None:
        self.world = World(
            plan, slots=setting.slots, queued=setting.queued, max_recoveries=setting.max_recoveries
        )
        self.referee = self._judge(plan, setting)
        self.outbox: dict[str, m.Settled | m.HandlerDone] = {}
        self.handled: list[m.Settled | m.HandlerDone] = []
        self._check()

    def _judge(self, plan: Plan, setting: Setting) -> Any:
        return Referee(plan, setting.max_recoveries)

    # -- moves

    def play(self, move: Move) -> None:
        """Make one move, as far as it is possible now."""
        match move.kind:
            case "end" | "end later" | "die before commit" | "die after commit":
                self._end_body(move)
            case "handle":
                self._end_handler(move)
            case "deliver":
                self._deliver(list(self.outbox)[: 1 + move.how])
            case "tick" | "tick early":
                self._tick(early=move.kind == "tick early")
            case "undo" | "cancel" | "retry":
                self._ask(move.kind, together=move.how % 4 == 0)
            case "repeat":
                self._repeat(move.pick)
            case "die" | "release":
                self._die(crashed=move.kind == "die")
            case "park":
                self._park()
        self._check()

    def end(self) -> None:
        """Let everything that is under way go well, until the run has ended (rule O5)."""
        for _ in range(_MOST_MOVES_TO_END):
            if self.world.state.terminal:
                return
            self._go_on()
            self._check()
        raise AssertionError("the run does not end")

    def _go_on(self) -> None:
        world = self.world
        if self.outbox:
            self._deliver(list(self.outbox))
        elif world.adopting:
            self._handle()
        elif world.state.status == "stuck":
            self._ask("retry")
        elif world.bodies:
            self._end_body(Move("end", 0, 0))
        elif world.handler is not None:
            self._end_handler(Move("handle", 0, 0))
        else:
            self._tick(early=False)

    def _end_body(self, move: Move) -> None:
        running = [name for name in self.world.bodies if name not in self.outbox]
        death = _DEATHS.get(move.kind)
        if not running:
            self._handle(death=death)
            return
        name = running[move.pick % len(running)]
        self.outbox[name] = self.world.settled(name, self._result(name, move.how))
        if move.kind != "end later":
            self._deliver([name], death)

    def _result(self, name: str, how: int) -> m.Result:
        body = self.world.bodies[name]
        begun = m.Failure(error_of(name, body.attempt), retryable=how % 2 == 0)
        match how:
            case 14 | 15:
                return begun
            case 12 | 13:
                return replace(begun, started=False)
            case 11:
                return m.Halting("enough")
            case _ if body.cut and how < 8:
                return m.Interrupted()
            case _:
                return m.Success(name.encode(), skipped=how == 1)

    def _end_handler(self, move: Move) -> None:
        handler = self.world.handler
        if handler is None or "handler" in self.outbox:
            self._end_body(Move("end", move.pick, move.how))
            return
        failure = None if move.how < 9 else m.Failure(error_of(handler.step), retryable=move.how < 13)
        self.outbox["handler"] = self.world.done(failure)
        self._deliver(["handler"])

    def _deliver(self, keys: list[str], death: Death | None = None, also: m.Verb | None = None) -> None:
        reports = [self.outbox.pop(key) for key in keys]
        if self._handle(*reports, *([also] if also else []), death=death) or death == "after commit":
            self.handled += [report for report in reports if not self._may_count_again(report)]

    def _may_count_again(self, report: m.Settled | m.HandlerDone) -> bool:
        """Whether the same report may be made once more, because its body was lost with its process."""
        level = level_at(self.world.plan, self.world.state, report.path)
        if level is None:
            return True  # its level is gone with its generation, or was never stored
        state = level.state
        if isinstance(report, m.HandlerDone):
            return report.rollback == state.rollbacks and report.attempt > state.handler_attempt
        current = (report.generation, report.attempt) == (state.generation, state.steps[report.step].attempt)
        return current and report.step in state.in_flight

    def _tick(self, *, early: bool) -> None:
        alarm = next_alarm(self.world.plan, self.world.state)
        if alarm is not None:
            self.world.now = max(self.world.now, alarm - early)
        self._handle(m.Tick(self.world.now))
        alarm = next_alarm(self.world.plan, self.world.state)
        assert alarm is None or alarm > self.world.now, "an alarm that has rung rings again"

    def _ask(self, verb: m.VerbName, *, together: bool = False) -> None:
        """Ask, alone or `together` with the reports that have come in meanwhile."""
        asked = m.Verb(self.world.now, verb, "by hand")
        if together or self.world.adopting:
            self._deliver(list(self.outbox), also=asked)
            return
        refused = refusal(self.world.state, verb) is not None
        assert refused is (verb not in self.referee.allowed())
        records = self._handle(asked)
        assert not (refused and records), "a refused verb left a record"

    def _repeat(self, pick: int) -> None:
        """Rule O4: what has been handled once adds nothing when it comes again."""
        if self.handled and not self.world.adopting:
            assert self._handle(self.handled[pick % len(self.handled)]) == []

    def _die(self, *, crashed: bool) -> None:
        self.referee.died()
        self.world.die(crashed=crashed)
        self.outbox.clear()

    def _park(self) -> None:
        if not self.world.state.terminal and self.world.state.status != "stuck":
            self._die(crashed=False)
            self.world.park()

    def _handle(self, *messages: m.Message, death: Death | None = None) -> list[r.Record]:
        for message in messages:
            self.referee.heard(message)
        records = self.world.handle(*messages, death=death)
        if death is not None:
            self._see()
            self.referee.died()
            self.outbox.clear()
        return records

    # -- what must always hold

    def _see(self) -> None:
        for record in self.world.records[self.referee.seen :]:
            self.referee.see(record)

    def _check(self) -> None:
        self._see()
        world = self.world
        below = "/".join(world.handler.path) if world.handler is not None else ""
        beside = [name for name in world.bodies if name.startswith(below)]
        assert not (beside and world.handler), "a handler runs while a body of its level does (S3)"
        for key, times in world.begun.items():
            assert times <= 1 + world.torn[key], f"{key} ran again though nothing cut it off (O2)"
        if world.adopting:
            return
        assert _known(world.state, world.now) == _known(fold(world.plan, world.records), world.now)
        waits = world.bodies or world.handler or next_alarm(world.plan, world.state) is not None
        assert waits or world.state.terminal or world.state.status == "stuck", "nobody moves the run (O5)"


def _known(state: RunState, now: float) -> dict[str, Any]:
    """Everything in a state that its journal must tell, in the order that matters."""
    fields = {name: getattr(state, name) for name in state.__struct_fields__}
    fields["ready"] = [name for name in state.ready if name not in state.retrying]
    fields["rolled"] = list(state.rolled.items())
    wait = state.handler_retry_at
    fields["handler_retry_at"] = wait if wait is not None and wait > now else None
    fields["children"] = {name: _known(child, now) for name, child in state.children.items()}
    fields["steps"] = {
        name: replace(step, began=True) if name in state.in_flight else step
        for name, step in state.steps.items()
    }
    return fields
