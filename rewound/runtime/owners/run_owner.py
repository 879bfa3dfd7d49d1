"""The one writer of a run."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from rewound.actors import Actor, Letter, Supervisor
from rewound.errors import ClaimLost, JournalMismatch, RewoundError, StorageError
from rewound.runtime.declare import Plan, redacted_inputs
from rewound.runtime.engine import (
    Place,
    RunState,
    advance,
    is_working,
    next_alarm,
    places_of,
    refusal,
    start,
    started_in,
    wanted,
)
from rewound.runtime.engine.messages import Adopted, HandlerDone, Refused, Settled, Tick, Verb
from rewound.runtime.engine.records import Record
from rewound.runtime.groups import first_in
from rewound.runtime.logs import log_event
from rewound.runtime.owners.alarm import RunAlarm
from rewound.runtime.owners.hands import Hands
from rewound.runtime.owners.ledger import Ledger
from rewound.runtime.owners.letters import (
    Close,
    HandlerCut,
    MapBroken,
    MapClosed,
    MapStuck,
    OwnerMail,
    ReadMail,
    Wake,
)
from rewound.runtime.owners.maps import supervisor_for
from rewound.runtime.owners.narrate import narrate
from rewound.runtime.owners.opening import Birth, Opening, adopt, create
from rewound.runtime.owners.replies import answer
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.signals import Signals
from rewound.runtime.owners.turns import Turns
from rewound.runtime.owners.values import Site
from rewound.runtime.owners.work import Work
from rewound.storage.protocol import Answer, Created, Mail

__all__ = ["RunOwner"]


class RunOwner(Actor[OwnerMail]):
    """Owns one run: takes messages, lets the engine decide, commits, then acts.

    For each batch of letters (`handle`):

    1. Take in what there is: a hint of mail leads to reading it, a body that ended frees its place.
    2. Advance the state by each message, collecting records and answers.
    3. Start the ready steps for which there are slots, unless the node is closing.
    4. Commit once. Nothing has happened before this, and readers see nothing of it.
    5. Do what the state calls for and is not being done: run bodies and handlers, cut bodies off.
    6. Answer whoever asked, tell whoever waits.
    7. Give the run up if it has ended, is stuck, waits for a distant alarm, or the node is closing.

    Args:
        services: the node's.
        plan: what the run runs.
        run_id: the run; also the actor's key.
        birth: for a new run; without it the owner adopts the stored run, whose claim the node holds.
        crashed: the previous owner did not release the run.
        granted: slots taken for the first steps of a new run.
    """

    def __init__(
        self,
        services: Services,
        plan: Plan,
        run_id: str,
        *,
        birth: Birth | None = None,
        crashed: bool = False,
        granted: int = 0,
    ) -> None:
        self.key = run_id
        self.plan = plan
        self.run_id = run_id
        self.born = anyio.Event()
        self.created: Created | None = None
        self.error: StorageError | None = None
        self._services = services
        self._birth = birth
        self._crashed = crashed
        self._signals = Signals(services)
        self._turns = Turns(services.slots, self._signals.wake, granted)
        self._state = RunState()
        self._stored = False
        self._closing = services.closing
        self._alarm = RunAlarm(services, self._signals.ring)

    @property
    def state(self) -> RunState | None:
        """The run's state if all of it is stored; `None` before that, and while a commit is on its way."""
        return self._state if self._stored else None

    # -- life

    async def run(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Live until the run is given up or lost. A storage failure ends the owner, never its node."""
        self._signals.lead_to(self.ref)
        try:
            async with self._supervisor() as maps, anyio.create_task_group() as tasks:
                if await self._open(tasks, maps):
                    await serve()
                    self._end_tasks(tasks)
        except* ClaimLost as lost:
            self._services.claims.pop(self.run_id, None)
            self._leave("rewound.claim.lost", lost)
        except* StorageError as failed:
            self._leave("rewound.claim.orphaned", failed)
        finally:
            self.end()

    async def _open(self, tasks: TaskGroup, maps: Supervisor | None) -> bool:
        if self._birth is None:
            opening = await adopt(self._services, self.plan, self.run_id)
        else:
            self.created, opening = await create(self._services, self._birth)
        if opening is not None:
            self._take_up(opening, tasks, maps)
        return opening is not None

    def _take_up(self, opening: Opening, tasks: TaskGroup, maps: Supervisor | None) -> None:
        services = self._services
        self._state, self._stored = opening.state, True
        self._instance = opening.instance
        self._ledger = Ledger(
            services.storage,
            services.settings,
            opening.claim,
            length=opening.length,
            status=opening.status,
            alarmed=opening.alarmed,
        )
        self._hands = Hands(tasks)
        self._work = Work(
            services,
            self.plan,
            Site(services.storage, self.run_id),
            claim=opening.claim,
            instance=opening.instance,
            state=opening.state,
            hands=self._hands,
            maps=maps,
            crashed=self._crashed,
            report=self._signals.send,
        )

    async def started(self) -> None:
        """Act on a new run's first records, or find out what an adopted one needs."""
        self.born.set()
        if self._birth is not None:
            self._narrate(self._birth.records)
            bodies = places_of(self.plan, self._state)
            self._turns.take(len(bodies))
            self._act(bodies)
            if wanted(self.plan, self._state):
                self._signals.wake()  # not all first steps got a slot
            return
        at = self._services.time()
        adopted = Adopted(at, self._crashed, self._services.settings.max_recoveries)
        await self.handle([Letter(adopted), Letter(Tick(at)), Letter(ReadMail())])

    def _end_tasks(self, tasks: TaskGroup) -> None:
        """End all tasks: cancel those that run something, let the others go."""
        if self._work.busy:
            tasks.cancel_scope.cancel()
        self._hands.dismiss()

    def _leave(self, event: str, group: BaseExceptionGroup[StorageError]) -> None:
        self.error = error = cast("StorageError", first_in(group))
        log_event(event, logging.WARNING, reactor=self.plan.name, run=self.run_id, reason=str(error))
        if isinstance(error, JournalMismatch):
            self._services.waiters.fail(self.run_id, error)

    def end(self) -> None:
        """Give back what the owner held, and let everybody look again. Idempotent."""
        self._turns.close()
        self._alarm.set(None)
        self.born.set()
        self._services.changed(self.run_id)

    # -- the loop

    async def handle(self, letters: list[Letter[OwnerMail]]) -> None:
        """Carry out the seven steps of the class's docstring for one batch."""
        mail = await self._mail(letters)
        records: list[Record] = []
        replies: list[tuple[Letter[OwnerMail], RewoundError | None]] = []
        for letter in letters:
            match letter.message:
                case Verb() as verb:
                    replies.append((letter, self._verb(verb, records=records)))
                case message:
                    records += self._take_in(message)
        at = self._services.time()
        answers = [answer(piece, at, partial(self._verb, records=records)) for piece in mail]
        started = self._start(records)
        released = await self._store(records, answers, started)
        self._narrate(records)
        self._act(started)
        for letter, error in replies:
            letter.reply() if error is None else letter.fail(error)
        if records:
            self._services.changed(self.run_id)
        await self._give_up(released=released)

    async def _mail(self, letters: list[Letter[OwnerMail]]) -> list[Mail]:
        """Read mail, before the batch changes the state: readers may look at it meanwhile."""
        if any(isinstance(letter.message, ReadMail) for letter in letters):
            return await self._services.storage.mail(self.run_id)
        return []

    def _take_in(self, message: OwnerMail) -> list[Record]:
        """Free the place of a body that ended, then ask the engine."""
        match message:
            case Wake() | ReadMail():
                return []
            case Close(now):
                self._closing = True
                self._work.close(now=now)
                return []
            case HandlerCut(place) | MapClosed(place):
                self._work.free(place)
                return []
            case MapBroken(_, error):
                raise error
            case MapStuck(reason):
                message = Refused(self._services.time(), reason)
            case Settled() | HandlerDone():
                self._work.free((message.path, message.step))
            case _:
                pass
        return advance(self.plan, self._state, message)

    def _verb(self, verb: Verb, *, records: list[Record]) -> RewoundError | None:
        error = refusal(self._state, verb.verb)
        if error is None:
            records += advance(self.plan, self._state, verb)
        return error

    def _start(self, records: list[Record]) -> set[Place]:
        if self._closing:
            self._turns.take(0)
            return set()
        granted = self._turns.take(wanted(self.plan, self._state))
        began = start(self.plan, self._state, self._services.time(), granted)
        records += began
        return started_in(self.plan, began) if began else set()

    async def _store(self, records: list[Record], answers: list[Answer], started: set[Place]) -> bool:
        """Commit and return whether the run was given up; readers see nothing of it before.

        If the records are never stored, the slots of the steps that would have started go back.
        """
        self._stored = not records
        try:
            released = await self._commit(records, answers)
        except BaseException:
            self._services.slots.give(len(started))
            raise
        self._stored = True
        return released

    async def _commit(self, records: list[Record], answers: list[Answer]) -> bool:
        """Return whether the run was given up in the same operation."""
        over = self._state.terminal or self._state.status == "stuck"
        due = None if over else self._distant_alarm()
        leave = (over or due is not None) and not self._work.busy
        if not (records or answers or leave):
            return False
        appended = await self._ledger.commit(self._state, records, answers, release=leave, due=due)
        if appended.mail and leave:
            self._signals.send("mail", ReadMail())
        return appended.released

    def _distant_alarm(self) -> float | None:
        """Return the alarm that this run waits for and nothing else, if it is worth leaving memory for."""
        state = self._state
        if self._work.busy or is_working(self.plan, state):
            return None
        due = next_alarm(self.plan, state)
        return due if due is not None and self._alarm.is_distant(due) else None

    def _act(self, granted: set[Place]) -> None:
        """Do what the state calls for. `granted`: where a slot was taken for a body already."""
        self._work.act(self._services.time(), granted, closing=self._closing)
        if self._state.status == "stuck":
            self._work.close(now=True)
        self._alarm.set(None if self._closing else next_alarm(self.plan, self._state))

    async def _give_up(self, *, released: bool) -> None:
        if not released and self._closing and not self._work.busy:
            released = await self._ledger.release(wake=True)
            if not released:  # mail came in, which is answered first
                self._signals.send("mail", ReadMail())
        if released:
            self._services.claims.pop(self.run_id, None)
            self.stop()

    def _supervisor(self) -> AbstractAsyncContextManager[Supervisor | None]:
        signals = self._signals

        def crashed(key: object, error: Exception) -> None:
            signals.send(("crash", str(key)), MapBroken(((), str(key)), error))

        return supervisor_for(self.plan, self._services.clock, crashed)

    def _narrate(self, records: list[Record]) -> None:
        if records:
            narrate(self.plan.name, self.run_id, self._state, records, self._shown_inputs)

    def _shown_inputs(self) -> dict[str, Any]:
        return redacted_inputs(self.plan, self._instance)
