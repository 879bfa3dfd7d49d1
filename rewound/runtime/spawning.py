"""From inputs to a run that is stored and owned."""

import contextvars
import hashlib
import secrets
from typing import Any

from msgspec import Struct

from rewound.errors import PayloadTooLarge, StorageError
from rewound.runtime.declare import Plan, decode_inputs
from rewound.runtime.engine import RunState, fold, start
from rewound.runtime.engine.records import FORMAT, Record, Spawned, decode_records, encode_record
from rewound.runtime.logs import log_event
from rewound.runtime.node.node import Node
from rewound.runtime.owners.opening import Birth
from rewound.runtime.owners.run_owner import RunOwner
from rewound.storage.protocol import NewRun

__all__ = ["Spawn", "keyed_id", "spawn"]


class Spawn(Struct, frozen=True):
    """What spawning led to: a run, and its owner if the run is new and lives here."""

    run_id: str
    owner: RunOwner | None = None
    existing: bool = False
    inputs_differ: bool = False


def keyed_id(reactor: str, key: str) -> str:
    """Derive a run's id from its key, so that "create if absent" is one operation on one slot."""
    return hashlib.sha256(f"{reactor}\0{key}".encode()).hexdigest()[:32]


def random_id(at: float) -> str:
    """Make an id that sorts by time: 48 bits of milliseconds, 80 random ones."""
    return f"{int(at * 1000):012x}{secrets.token_hex(10)}"


async def spawn(node: Node, plan: Plan, given: Any, key: str | None) -> Spawn:
    """Create a run and start its owner, in a task of the node's: a cancelled caller leaves nothing torn.

    Raises:
        InputError: before anything is stored (feature A1).
        PayloadTooLarge: the inputs are larger than `max_payload`.
        StorageError: storage cannot be reached.
    """
    services = node.services
    instance, raw = decode_inputs(plan, given)
    if len(raw) > services.settings.max_payload:
        raise PayloadTooLarge(
            f"{plan.name}: the inputs take {len(raw)} bytes, more than "
            f"max_payload={services.settings.max_payload}; store them elsewhere and pass a reference"
        )
    await node.online()
    run_id = random_id(services.time()) if key is None else keyed_id(plan.name, key)
    if key is not None and (found := await _existing(node, run_id, raw)):
        return found
    await services.owner_slots.acquire()
    try:
        owner = _start_owner(node, plan, run_id, (instance, raw), key=key)
    except BaseException:
        services.owner_slots.give()
        raise
    await owner.born.wait()
    if owner.created is None:
        reason = owner.error or "this node lost its lease meanwhile"
        raise StorageError(
            f"{plan.name}: it is not known whether run {run_id} was stored: {reason}"
        ) from owner.error
    if not owner.created.created:
        return await _existing(node, run_id, raw) or Spawn(run_id, existing=True)
    return Spawn(run_id, owner)


def _start_owner(
    node: Node, plan: Plan, run_id: str, inputs: tuple[Any, bytes], *, key: str | None
) -> RunOwner:
    services = node.services
    instance, raw = inputs
    at = services.time()
    granted = 0 if services.closing else services.slots.take(len(plan.roots))
    records: list[Record] = [Spawned(at, raw, plan.name, plan.version, plan.shape)]
    state: RunState = fold(plan, records)
    records += start(plan, state, at, granted)
    new = NewRun(
        run_id=run_id,
        reactor=plan.name,
        status=state.status,
        format=FORMAT,
        fingerprint=plan.fingerprint,
        records=[encode_record(record) for record in records],
        commit=secrets.token_hex(6),
        nonce=secrets.token_hex(6),
        key=key,
    )
    owner = RunOwner(services, plan, run_id, birth=Birth(new, state, instance), granted=granted)

    def again() -> RunOwner:
        return RunOwner(services, plan, run_id, crashed=True)

    try:
        node.supervisor.start(owner, factory=again, context=contextvars.copy_context())
    except BaseException:
        services.slots.give(granted)
        raise
    return owner


async def _existing(node: Node, run_id: str, raw: bytes) -> Spawn | None:
    """Find the run that a key was used for, and say if it has other inputs."""
    owner = node.services.owners.get(run_id)
    if owner is not None:
        await owner.born.wait()
    journal = await node.services.storage.load(run_id, limit=1)
    if journal is None:
        return None
    first = decode_records(journal.records)[0]
    differ = isinstance(first, Spawned) and first.inputs != raw
    if differ:
        log_event(
            "rewound.run.existing",
            30,
            run=run_id,
            reason="the key was used with other inputs, which are kept",
        )
    return Spawn(run_id, existing=True, inputs_differ=differ)
