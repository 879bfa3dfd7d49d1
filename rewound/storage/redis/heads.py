"""Heads as Redis keeps them: a hash, read as a flat list of fields and values."""

from collections.abc import Sequence

from msgspec import Struct

from rewound.storage.protocol import Head, NewRun

__all__ = ["Stored", "new_fields", "new_head", "read_head"]


class Stored(Struct, frozen=True):
    """A head, with what only this backend needs of it.

    Args:
        head: as callers see it.
        origin: the commit that created the run.
        alarm: names its timer entry: the commit, or the claim's nonce, that set the alarm.
        woken: released or created with work left, and nobody took it since.
    """

    head: Head
    origin: str
    alarm: str | None
    woken: bool


def read_head(run_id: str, flat: Sequence[bytes]) -> Stored | None:
    """Read a head; `None` if the run is not there."""
    if not flat:
        return None
    pairs = iter(flat)
    values = {field.decode(): value.decode() for field, value in zip(pairs, pairs, strict=True)}
    get = values.get
    head = Head(
        run_id=run_id,
        reactor=values["reactor"],
        status=values["status"],
        terminal="terminal" in values,
        created=float(values["created"]),
        updated=float(values["updated"]),
        length=int(values["length"]),
        commit=values["commit"],
        epoch=int(values["epoch"]),
        nonce=values["nonce"],
        node=get("node"),
        format=int(values["format"]),
        fingerprint=values["fingerprint"],
        key=get("key"),
        due=_number(get("due")),
        expires=_number(get("expires")),
        retained="retained" in values,
        mail=int(get("mail", 0)),
    )
    return Stored(head, values["origin"], get("alarm"), "woken" in values)


def new_fields(new: NewRun, node: str | None) -> list[str]:
    """Return the fields of a new run, flat; the script adds the times."""
    fields = {
        "reactor": new.reactor,
        "status": new.status,
        "length": str(len(new.records)),
        "commit": new.commit,
        "origin": new.commit,
        "epoch": "0" if node is None else "1",
        "nonce": new.nonce,
        "format": str(new.format),
        "fingerprint": new.fingerprint,
    }
    fields |= {"woken": "1"} if node is None else {"node": node}
    fields |= {} if new.key is None else {"key": new.key}
    return [word for pair in fields.items() for word in pair]


def new_head(new: NewRun, node: str | None, created: float) -> Head:
    """Return the head of a run that was just created."""
    return Head(
        run_id=new.run_id,
        reactor=new.reactor,
        status=new.status,
        terminal=False,
        created=created,
        updated=created,
        length=len(new.records),
        commit=new.commit,
        epoch=0 if node is None else 1,
        nonce=new.nonce,
        node=node,
        format=new.format,
        fingerprint=new.fingerprint,
        key=new.key,
    )


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
