"""Taking over runs: claim, start an owner; or park what no node can go on with."""

import secrets
from collections.abc import Mapping

from rewound.actors import Supervisor
from rewound.errors import ActorStopped, ClaimLost, RewoundError, WrongStatus
from rewound.runtime.declare import Plan, compatible
from rewound.runtime.engine.messages import Tick
from rewound.runtime.engine.records import (
    FORMAT,
    Failed,
    Halted,
    Parked,
    Record,
    Spawned,
    Started,
    Succeeded,
    decode_records,
    encode_record,
)
from rewound.runtime.engine.state import TERMINAL
from rewound.runtime.logs import log_event
from rewound.runtime.owners.letters import ReadMail
from rewound.runtime.owners.replies import encode_reply
from rewound.runtime.owners.run_owner import RunOwner
from rewound.runtime.owners.services import Services
from rewound.storage.protocol import Answer, Claim, Commit, Head, Need

__all__ = ["Adoption"]


class Adoption:
    """Finds an owner on this node for a run that needs one.

    Args:
        services: the node's.
        supervisor: where owners live.
        plans: what this node can run, by stored name.
    """

    def __init__(self, services: Services, supervisor: Supervisor, plans: Mapping[str, Plan]) -> None:
        self._services = services
        self._supervisor = supervisor
        self._plans = plans
        self._objected: dict[str, float] = {}

    async def take(self, need: Need) -> None:
        """See to one run: nudge its owner if it lives here, else claim it and start one.

        A run that this node's version of the reactor cannot go on with is left to others; if none has
        taken it after two leases, it is parked as stuck (architecture.md 5.8, feature A8).
        """
        if self._nudge(need):
            return
        plan = self._plans.get(need.head.reactor)
        if plan is None or not self._services.owner_slots.take(1):
            return
        started = False
        try:
            started = await self._take_over(need, plan)
        finally:
            if not started:
                self._services.owner_slots.give()

    def start(self, plan: Plan, run_id: str, *, crashed: bool) -> None:
        """Start the owner of a run whose claim this node holds; an owner slot was taken for it."""

        def again() -> RunOwner:
            return RunOwner(self._services, plan, run_id, crashed=True)

        self._supervisor.start(RunOwner(self._services, plan, run_id, crashed=crashed), factory=again)

    async def adopt_orphans(self) -> None:
        """Start an owner for each claim that has none: its owner met a storage failure."""
        for run_id, claim in list(self._services.claims.items()):
            if self._supervisor.find(run_id) is not None:
                continue
            journal = await self._services.storage.load(run_id, limit=0)
            if journal is None or (journal.head.epoch, journal.head.nonce) != (claim.epoch, claim.nonce):
                self._services.claims.pop(run_id, None)
            elif self._services.owner_slots.take(1):
                self.start(self._plans[journal.head.reactor], run_id, crashed=True)

    def _nudge(self, need: Need) -> bool:
        """Pass the news on to the run's owner, if it lives here."""
        owner = self._supervisor.find(need.head.run_id)
        if owner is None:
            return False
        try:
            owner.signal("mail", ReadMail())
            if need.reason == "alarm":
                owner.signal("alarm", Tick(self._services.time()))
        except ActorStopped:
            return True  # it is ending; the next sweep finds what it left
        return True

    async def _take_over(self, need: Need, plan: Plan) -> bool:
        head = need.head
        objection = await self._objection(head, plan)
        if objection and not self._is_ripe(head.run_id):
            return False
        claim = await self._claim(head)
        if claim is None or self._supervisor.find(head.run_id) is not None:
            return False
        self._objected.pop(head.run_id, None)
        self._services.claims[head.run_id] = claim
        if objection:
            await self.park(head.run_id, objection)
            return False
        log_event(
            "rewound.claim.taken",
            run=head.run_id,
            reactor=head.reactor,
            reason=need.reason,
            epoch=claim.epoch,
        )
        self.start(plan, head.run_id, crashed=need.reason == "dead")
        return True

    async def _claim(self, head: Head) -> Claim | None:
        services = self._services
        if head.node == services.node:  # ours, though we lost sight of it
            return Claim(head.run_id, services.node, head.epoch, head.nonce)
        return await services.storage.claim(head, services.node, secrets.token_hex(6))

    async def _objection(self, head: Head, plan: Plan) -> str:
        """Say why this node's version of the reactor cannot go on with a run; empty if it can."""
        if head.format > FORMAT:
            return f"its records are of format {head.format}, this version reads {FORMAT}"
        if head.fingerprint == plan.fingerprint:
            return ""
        journal = await self._services.storage.load(head.run_id)
        if journal is None:
            return ""
        try:
            records = decode_records(journal.records)
        except RewoundError as error:
            return str(error)
        spawned = next((record for record in records if isinstance(record, Spawned)), None)
        if spawned is None:
            return "its journal does not begin with its inputs"
        return "; ".join(compatible(spawned.shape, plan, _touched(records)))

    def _is_ripe(self, run_id: str) -> bool:
        """Whether every node has had two leases to take a run that this one objects to."""
        now = self._services.clock.now()
        return now - self._objected.setdefault(run_id, now) >= 2 * self._services.settings.lease

    async def park(self, run_id: str, reason: str) -> None:
        """Park a run whose claim this node holds as stuck, without folding its journal."""
        services = self._services
        claim = services.claims.get(run_id)
        journal = await services.storage.load(run_id, limit=0)
        if claim is None or journal is None:
            return
        over = journal.head.status in TERMINAL or journal.head.status == "stuck"
        refused = encode_reply(WrongStatus(f"run {run_id} cannot go on: {reason}"))
        at = services.time()
        commit = Commit(
            claim=claim,
            id=secrets.token_hex(8),
            expected=journal.head.length,
            records=[] if over else [encode_record(Parked(at, reason))],
            status=None if over else "stuck",
            due=None,
            answers=[Answer(mail.id, refused) for mail in await services.storage.mail(run_id)],
            retention=services.settings.retention,
            release=True,
        )
        try:
            appended = await services.storage.append(commit)
        except ClaimLost:
            services.claims.pop(run_id, None)
            return
        if appended.released:
            services.claims.pop(run_id, None)
        log_event("rewound.run.stuck", 40, run=run_id, reactor=journal.head.reactor, reason=reason)
        services.changed(run_id)


def _touched(records: list[Record]) -> set[str]:
    """Name the steps that a journal says anything about."""
    return {record.step for record in records if isinstance(record, Started | Succeeded | Failed | Halted)}
