"""Taking over runs: claim, start an owner; or leave them to nodes of another version."""

import logging
import secrets
from collections.abc import Mapping

from rewound.actors import Supervisor
from rewound.errors import ActorStopped, ClaimLost, StorageError
from rewound.runtime.declare import Plan
from rewound.runtime.engine.messages import Tick
from rewound.runtime.logs import log_event
from rewound.runtime.node.launch import launch
from rewound.runtime.node.objections import Objections
from rewound.runtime.node.parking import park
from rewound.runtime.owners.letters import ReadMail
from rewound.runtime.owners.run_owner import RunOwner
from rewound.runtime.owners.services import Services
from rewound.storage.protocol import Claim, Head, Need

__all__ = ["Adoption"]

KEPT = 2
"""Leases for which a claim on a run that is not in storage is kept: what was sent may still arrive."""


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
        self._objections = Objections(services)
        self._missing: dict[str, float] = {}

    async def take(self, need: Need) -> None:
        """See to one run: nudge its owner if it lives here, else claim it and start one.

        A run that this node's version of the reactor cannot go on with is left to others; if none has
        taken it after two leases, it is parked as stuck (docs/architecture.md 5.8, feature A8).
        """
        if self._nudge(need) or self._services.closing:
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

    async def adopt_orphans(self) -> None:
        """Start an owner for each claim that has none: storage failed its owner, or whoever claimed it."""
        for claim in list(self._services.claims.values()):
            if self._is_orphan(claim):
                journal = await self._services.storage.load(claim.run_id, limit=0)
                await self._adopt_orphan(claim, None if journal is None else journal.head)

    async def give_up(self, run_id: str, reason: str) -> None:
        """Park a run whose owner crashed again and again."""
        claim = self._services.claims.pop(run_id, None)
        if claim is not None:
            await self._park(claim, reason)

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

    def _is_orphan(self, claim: Claim) -> bool:
        services = self._services
        alive = self._supervisor.find(claim.run_id) is not None
        return not (alive or services.closing) and services.claims.get(claim.run_id) is claim

    async def _adopt_orphan(self, claim: Claim, head: Head | None) -> None:
        services, run_id = self._services, claim.run_id
        if not self._is_orphan(claim):
            return  # somebody took care of it while storage was asked
        if head is None or (head.epoch, head.nonce) != (claim.epoch, claim.nonce):
            since = self._missing.setdefault(run_id, services.clock.now())
            if services.clock.now() - since >= KEPT * services.settings.lease:
                self._forget(run_id)
            return
        self._missing.pop(run_id, None)
        objection = self._objections.standing(run_id)
        if objection:
            if self._objections.is_ripe(run_id):
                await self.give_up(run_id, objection)
        elif services.owner_slots.take(1):
            self._launch(self._plans[head.reactor], run_id, crashed=True)

    def _forget(self, run_id: str) -> None:
        self._services.claims.pop(run_id, None)
        self._missing.pop(run_id, None)

    def _launch(self, plan: Plan, run_id: str, *, crashed: bool) -> None:
        owner = RunOwner(self._services, plan, run_id, crashed=crashed)
        launch(self._services, self._supervisor, owner, self._services.context.copy())

    async def _take_over(self, need: Need, plan: Plan) -> bool:
        head = need.head
        objection = await self._objections.to(head, plan)
        if objection and not self._objections.is_ripe(head.run_id):
            return False
        claim = await self._claim(head)
        if claim is None:
            return False
        if objection:
            self._services.claims.pop(head.run_id)
            await self._park(claim, objection)
            return False
        log_event(
            "rewound.claim.taken",
            run=head.run_id,
            reactor=head.reactor,
            reason=need.reason,
            epoch=claim.epoch,
        )
        self._launch(plan, head.run_id, crashed=need.reason == "dead")
        return True

    async def _claim(self, head: Head) -> Claim | None:
        """Claim a run and note the claim; `None` if it is somebody's, or the node was fenced meanwhile.

        The claim is noted before it is asked for: should the answer never come, the sweeper finds a claim
        without an owner and looks what was stored. Whoever asks again, also another task at the same time,
        asks for the noted one: a repeat, which storage recognises by its nonce.
        """
        services, run_id, node = self._services, head.run_id, self._services.node
        if not node or self._supervisor.find(run_id) is not None:
            return None
        if head.node == node:  # ours, though we lost sight of it
            claim: Claim | None = Claim(run_id, node, head.epoch, head.nonce)
        else:
            noted = services.claims.get(run_id)
            if noted is None or noted.epoch != head.epoch + 1:
                noted = Claim(run_id, node, head.epoch + 1, secrets.token_hex(6))
            services.claims[run_id] = noted
            claim = await services.storage.claim(head, node, noted.nonce)
            if claim is None and services.claims.get(run_id) is noted:
                del services.claims[run_id]
        if claim is None or node != services.node or self._supervisor.find(run_id) is not None:
            return None
        services.claims[run_id] = claim
        return claim

    async def _park(self, claim: Claim, reason: str) -> None:
        """Park a run; a claim that could not be given up is an orphan's again."""
        parked = False
        try:
            parked = await park(self._services, claim, reason)
        except ClaimLost:
            parked = True
        except StorageError as error:
            log_event("rewound.claim.orphaned", logging.WARNING, run=claim.run_id, reason=str(error))
        if not parked and claim.node == self._services.node:
            self._services.claims[claim.run_id] = claim
