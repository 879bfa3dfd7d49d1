"""From inputs to a run that is stored and owned."""

import contextvars
import hashlib
import logging
import secrets
from typing import Any

from msgspec import Struct

from rewound.errors import PayloadTooLarge, StorageError
from rewound.runtime.declare import Plan, decode_inputs
from rewound.runtime.engine import RunState, fold, start
from rewound.runtime.engine.records import FORMAT, Record, Spawned, decode_records, encode_record
from rewound.runtime.logs import log_event
from rewound.runtime.node.launch import launch
from rewound.runtime.node.node import Node
from rewound.runtime.owners.opening import Birth
from rewound.runtime.owners.run_owner import RunOwner
from rewound.storage.protocol import NewRun

__all__ = ["Spawn", "keyed_id", "spawn"]


class Spawn(Struct, frozen=True):
    """What spawning led to."""

    run_id: str
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
    _check_size(plan, raw, services.settings.max_payload)
    run_id = random_id(services.time()) if key is None else keyed_id(plan.name, key)
    found = await _found_or_room(node, run_id, raw, keyed=key is not None)
    if found is not None:
        return found
    owner = _start_owner(node, plan, run_id, (instance, raw), key=key)
    await owner.born.wait()
    if owner.created is None:
        reason = owner.error or "this node lost its lease meanwhile"
        raise StorageError(
            f"{plan.name}: it is not known whether run {run_id} was stored: {reason}"
        ) from owner.error
    if not owner.created.created:
        return await _existing(node, run_id, raw) or Spawn(run_id, existing=True)
    return Spawn(run_id)


def _check_size(plan: Plan, raw: bytes, limit: int) -> None:
    if len(raw) > limit:
        raise PayloadTooLarge(
            f"{plan.name}: the inputs take {len(raw)} bytes, more than max_payload={limit}; "
            "store them elsewhere and pass a reference"
        )


async def _found_or_room(node: Node, run_id: str, raw: bytes, *, keyed: bool) -> Spawn | None:
    """Find the run that there is, or take room for its owner."""
    while True:
        found = await _existing(node, run_id, raw) if keyed else None
        if found is not None:
            return found
        await node.room()
        if node.supervisor.find(run_id) is None:
            return None
        node.services.owner_slots.give()  # another task was faster: the run is its


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
    token = secrets.token_hex(12)
    new = NewRun(
        run_id=run_id,
        reactor=plan.name,
        status=state.status,
        format=FORMAT,
        fingerprint=plan.fingerprint,
        records=[encode_record(record) for record in records],
        commit=token[:12],
        nonce=token[12:],
        key=key,
    )
    owner = RunOwner(services, plan, run_id, birth=Birth(new, records, state, instance), granted=granted)
    launch(services, node.supervisor, owner, contextvars.copy_context())
    return owner


async def _existing(node: Node, run_id: str, raw: bytes) -> Spawn | None:
    """Find the run that a key was used for, and say if it has other inputs."""
    owner = node.services.owners.get(run_id)
    if owner is not None:
        await owner.born.wait()
    journal = await node.services.storage.load(run_id, limit=1)
    if journal is None:
        if owner is not None:  # storage lost the run, or it has expired: its owner goes first
            await owner.ref.wait()
        return None
    first = decode_records(journal.records)[0]
    differ = isinstance(first, Spawned) and first.inputs != raw
    if differ:
        log_event(
            "rewound.run.existing",
            logging.WARNING,
            run=run_id,
            reason="the key was used with other inputs, which are kept",
        )
    return Spawn(run_id, existing=True, inputs_differ=differ)
