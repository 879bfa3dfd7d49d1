"""An owner and its storage without an event loop: applies the engine's answers, and can die anywhere."""

from collections import Counter
from typing import Literal

from msgspec import Struct

from rewound.runtime.declare import Plan
from rewound.runtime.engine import (
    CutBody,
    Effect,
    Open,
    Place,
    RunBody,
    RunHandler,
    RunState,
    advance,
    fold,
    follow,
    level_at,
    places_of,
    start,
)
from rewound.runtime.engine import messages as m
from rewound.runtime.engine import records as r
from rewound.runtime.engine.records import decode_records, encode_record
from rewound.runtime.outcomes import StepError
from tests.runtime.engine.story import told

__all__ = ["Body", "Death", "World", "error_of"]

Death = Literal["before commit", "after commit"]
"""Where a process dies while it handles a batch: nothing of it is stored, or all of it."""


class Body(Struct):
    """A step's body that is running."""

    attempt: int
    generation: int
    cut: bool = False


def error_of(step: str, attempts: int = 1) -> StepError:
    """Describe a failure of a step."""
    return StepError("Boom", f"{step} broke", step, attempts)


def spell(path: tuple[str, ...], step: str) -> str:
    """Name a step from the root: `charge`, or `child/charge` in a composed child."""
    return "/".join((*path, step))


def place_of(name: str) -> Place:
    """Find the place that `spell` named."""
    *path, step = name.split("/")
    return tuple(path), step


class World:
    """One run, its owner, its bodies and its journal.

    Args:
        plan: what runs.
        slots: how many bodies may be in flight.
        queued: the run starts `queued`, without an owner.
        max_recoveries: how many crashes in a row are put up with.

    Attributes:
        now: the storage's clock; move it with `tick`.
        journal: the stored records.
        bodies: what runs, by step; empty after a death.
        handler: the undo or compensate that runs.
        begun: how often each attempt of a body or handler really began.
        torn: how often each was running when its process died.
    """

    def __init__(
        self, plan: Plan, *, slots: int = 100, queued: bool = False, max_recoveries: int = 5
    ) -> None:
        self.plan = plan
        self.slots = slots
        self.max_recoveries = max_recoveries
        self.now = 0.0
        self.bodies: dict[str, Body] = {}
        self.handler: RunHandler | None = None
        self.begun: Counter[tuple[object, ...]] = Counter()
        self.torn: Counter[tuple[object, ...]] = Counter()
        spawned = r.Spawned(0.0, b"", plan.name, plan.version, plan.shape, queued)
        self.journal: list[bytes] = [encode_record(spawned)]
        self.state: RunState = fold(plan, self.records)
        self._adopting: bool | None = False if queued else None
        if not queued:
            self.handle()

    @property
    def records(self) -> list[r.Record]:
        """The journal, decoded."""
        return decode_records(self.journal)

    def story(self, since: int = 0) -> list[str]:
        """Tell the journal in short words, such as `failed a`."""
        return told(self.records[since:])

    @property
    def adopting(self) -> bool:
        """Whether the run has no owner; the next batch begins with its adoption."""
        return self._adopting is not None

    # -- what an owner does

    def handle(self, *messages: m.Message, death: Death | None = None) -> list[r.Record]:
        """Handle a batch: decide, start, commit, act. After a death the next batch begins with adoption."""
        records: list[r.Record] = []
        running = self._running()
        for message in [*self._adoption(), *messages]:
            self._free(message)
            records += advance(self.plan, self.state, message)
        records += start(
            self.plan, self.state, self.now, max(0, self.slots - len(places_of(self.plan, self.state)))
        )
        if death != "before commit":
            self.journal += [encode_record(record) for record in records]
        if death is not None:
            # a report that was not stored is lost, and so is what it reported
            self.torn.update(running - self._running() if death == "before commit" else ())
            self.die()
            return []
        opened: list[m.Message] = []
        bodies = [place_of(name) for name in self.bodies]
        for effect in follow(self.plan, self.state, self.now, bodies=bodies, handlers=self._handlers()):
            opened += self._act(effect)
        return records + (self.handle(*opened) if opened else [])

    def die(self, *, crashed: bool = True) -> None:
        """Lose everything that is not stored. `crashed=False`: the owner released the run."""
        self.torn.update(self._running())
        self.bodies.clear()
        self.handler = None
        self.state = fold(self.plan, self.records)
        self._adopting = crashed or bool(self._adopting)

    def park(self, reason: str = "no node can run it") -> None:
        """Park the run the way a node does that claimed it and cannot go on with it."""
        self.die(crashed=False)
        self.journal.append(encode_record(r.Parked(self.now, reason)))
        self.state = fold(self.plan, self.records)

    def _adoption(self) -> list[m.Message]:
        if self._adopting is None:
            return []
        crashed, self._adopting = self._adopting, None
        return [m.Adopted(self.now, crashed, self.max_recoveries), m.Tick(self.now)]

    def _free(self, message: m.Message) -> None:
        match message:
            case m.Settled(_, step, attempt, generation):
                name = spell(message.path, step)
                body = self.bodies.get(name)
                if body is not None and (body.attempt, body.generation) == (attempt, generation):
                    del self.bodies[name]
            case m.HandlerDone(_, step, kind, attempt):
                ended = RunHandler(message.path, step, kind, attempt, message.rollback)
                if self.handler == ended:
                    self.handler = None
            case _:
                pass

    def _act(self, effect: Effect) -> list[m.Message]:
        match effect:
            case RunBody(path, step, attempt):
                name = spell(path, step)
                body = self.bodies[name] = Body(attempt, self._generation(path))
                self.begun[self._key(name, body)] += 1
            case CutBody(path, step):
                self.bodies[spell(path, step)].cut = True
            case Open(path, step, attempt):
                return [m.Opened(self.now, (*path, step), attempt, self._generation(path), b"")]
            case RunHandler():
                assert self.handler is None
                self.handler = effect
                self.begun[self._handler_key(effect)] += 1
            case _:
                raise AssertionError(f"{effect}: these plans have no maps")
        return []

    def _generation(self, path: tuple[str, ...]) -> int:
        level = level_at(self.plan, self.state, path)
        assert level is not None
        return level.state.generation

    def _handlers(self) -> list[Place]:
        return [] if self.handler is None else [(self.handler.path, self.handler.step)]

    def _running(self) -> set[tuple[object, ...]]:
        handlers = [] if self.handler is None else [self._handler_key(self.handler)]
        return {*handlers, *(self._key(name, body) for name, body in self.bodies.items())}

    def _key(self, name: str, body: Body) -> tuple[object, ...]:
        return (body.generation, name, body.attempt)

    def _handler_key(self, handler: RunHandler) -> tuple[object, ...]:
        return (handler.rollback, handler.kind, spell(handler.path, handler.step), handler.attempt)

    # -- what happens to it

    def settled(self, name: str, result: m.Result) -> m.Settled:
        """Make the message that a running body ended."""
        body = self.bodies[name]
        path, step = place_of(name)
        return m.Settled(self.now, step, body.attempt, body.generation, result, path)

    def done(self, failure: m.Failure | None = None) -> m.HandlerDone:
        """Make the message that the running handler ended."""
        assert self.handler is not None, "no handler is running"
        handler = self.handler
        return m.HandlerDone(
            self.now, handler.step, handler.kind, handler.attempt, failure, handler.rollback, handler.path
        )

    def succeed(self, *names: str, skipped: bool = False) -> None:
        """Let bodies return, one after another."""
        for name in names:
            self.handle(self.settled(name, m.Success(b"", skipped)))

    def fail(self, name: str, *, retryable: bool = False, started: bool = True) -> list[r.Record]:
        """Let a body raise."""
        error = error_of(name, self.bodies[name].attempt if started else 0)
        return self.handle(self.settled(name, m.Failure(error, retryable, 0.5, started)))

    def halt(self, name: str, reason: str = "enough") -> None:
        """Let a body raise `Halt`."""
        self.handle(self.settled(name, m.Halting(reason)))

    def end_cut(self, *names: str) -> None:
        """Let bodies that were cut off end."""
        for name in names:
            assert self.bodies[name].cut, f"{name} was not cut off"
            self.handle(self.settled(name, m.Interrupted()))

    def hand_back(self, times: int = 1) -> None:
        """Let handlers return, one after another."""
        for _ in range(times):
            self.handle(self.done())

    def fail_handler(self, *, retryable: bool = False) -> list[r.Record]:
        """Let the running handler raise."""
        assert self.handler is not None, "no handler is running"
        return self.handle(self.done(m.Failure(error_of(self.handler.step), retryable)))

    def tick(self, at: float) -> list[r.Record]:
        """Let the alarm ring at a time."""
        self.now = at
        return self.handle(m.Tick(at))

    def ask(self, verb: m.VerbName, reason: str = "") -> list[r.Record]:
        """Ask for an undo, a cancel or a retry."""
        return self.handle(m.Verb(self.now, verb, reason))
