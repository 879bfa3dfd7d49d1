"""Parking a run as stuck without understanding it."""

import logging
import secrets

from rewound.errors import WrongStatus
from rewound.runtime.engine.records import Parked, encode_record
from rewound.runtime.engine.state import TERMINAL
from rewound.runtime.logs import log_event
from rewound.runtime.owners.replies import encode_reply
from rewound.runtime.owners.services import Services
from rewound.storage.protocol import Answer, Claim, Commit, Head, Mail

__all__ = ["park"]


async def park(services: Services, claim: Claim, reason: str) -> bool:
    """Record that a run is stuck, refuse its mail and give the claim up, without folding its journal.

    Returns:
        Whether the claim was given up; not if mail came in meanwhile.

    Raises:
        ClaimLost: it is another node's by now.
        StorageError: storage cannot be reached.
    """
    journal = await services.storage.load(claim.run_id, limit=0)
    if journal is None:
        return True
    mail = await services.storage.mail(claim.run_id)
    appended = await services.storage.append(_commit(services, journal.head, claim, mail, reason))
    log_event(
        "rewound.run.stuck", logging.ERROR, run=claim.run_id, reactor=journal.head.reactor, reason=reason
    )
    services.changed(claim.run_id)
    return appended.released


def _commit(services: Services, head: Head, claim: Claim, mail: list[Mail], reason: str) -> Commit:
    over = head.status in TERMINAL or head.status == "stuck"
    refused = encode_reply(WrongStatus(f"run {claim.run_id} cannot go on: {reason}"))
    return Commit(
        claim=claim,
        id=secrets.token_hex(8),
        expected=head.length,
        records=[] if over else [encode_record(Parked(services.time(), reason))],
        status=None if over else "stuck",
        due=None,
        answers=[Answer(piece.id, refused) for piece in mail],
        retention=services.settings.retention,
        release=True,
    )
