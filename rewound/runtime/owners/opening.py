"""How an owner comes by its run: it creates it, or adopts a stored one."""

from typing import Any

from msgspec import Struct

from rewound.errors import ClaimLost, RewoundError
from rewound.runtime.declare import Plan, Reactor, load_inputs
from rewound.runtime.engine import RunState, fold
from rewound.runtime.engine.records import Record, decode_records
from rewound.runtime.owners.services import Services
from rewound.storage.protocol import Claim, Created, NewRun

__all__ = ["Birth", "Opening", "adopt", "create"]


class Birth(Struct, frozen=True):
    """A run to create.

    Args:
        new: what to store.
        records: its records.
        state: what these records add up to.
        instance: the run's inputs.
    """

    new: NewRun
    records: list[Record]
    state: RunState
    instance: Reactor[Any]


class Opening(Struct, frozen=True):
    """A claimed run, ready to go on."""

    claim: Claim
    state: RunState
    instance: Reactor[Any]
    length: int
    status: str
    alarmed: bool = False


async def create(services: Services, birth: Birth) -> tuple[Created, Opening | None]:
    """Create a run; no opening if there was one of that id already.

    The claim is noted before it is asked for: should the answer never come, the sweeper finds a claim
    without an owner and looks what was stored.
    """
    new, node = birth.new, services.node
    services.claims[new.run_id] = Claim(new.run_id, node, 1, new.nonce)
    created = await services.storage.create(new, node)
    if created.claim is None:
        services.claims.pop(new.run_id, None)
        return created, None
    return created, Opening(created.claim, birth.state, birth.instance, len(new.records), new.status)


async def adopt(services: Services, plan: Plan, run_id: str) -> Opening | None:
    """Take up a run that this node holds a claim on.

    One that this version of the reactor, or of Rewound, cannot read is given up again, with the reason
    noted, so that a node of another version can take it (docs/architecture.md 5.8).

    Raises:
        ClaimLost: it is gone, or another node's by now.
    """
    claim = services.claims.get(run_id)
    journal = await services.storage.load(run_id)
    if claim is None or journal is None:
        raise ClaimLost(f"run {run_id} is gone from storage, or its claim was given up")
    head = journal.head
    if (head.epoch, head.nonce) != (claim.epoch, claim.nonce):
        raise ClaimLost(f"run {run_id} is owned by {head.node or 'nobody'} by now")
    try:
        state = fold(plan, decode_records(journal.records))
        instance = load_inputs(plan, state.inputs)
    except RewoundError as error:
        services.refusals[run_id] = f"{type(error).__name__}: {error}"
        if await services.storage.release(claim, retention=services.settings.retention, wake=True):
            services.claims.pop(run_id, None)
        return None
    return Opening(claim, state, instance, head.length, head.status, head.due is not None)
