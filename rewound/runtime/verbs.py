"""Asking a run's owner for an undo, a cancel or a retry, on whichever node it lives."""

import secrets
from contextlib import suppress

from rewound.errors import ActorStopped, RunNotFound
from rewound.runtime.deadline import within
from rewound.runtime.engine.messages import Verb, VerbName
from rewound.runtime.node.node import Node
from rewound.runtime.owners.replies import decode_reply, encode_verb
from rewound.storage.protocol import Mail, Need

__all__ = ["ask_owner"]


async def ask_owner(node: Node, run_id: str, verb: VerbName, reason: str) -> None:
    """Return once the run's owner has accepted the verb and that is stored.

    An owner in this process is asked directly. Any other is sent mail, which is stored before it is
    handled; a run that has no owner gets one, here if this node can run it.

    Raises:
        VerbError: as the owner answered, whichever node it is on.
        RunNotFound: there is no such run.
        StorageError: storage cannot be reached.
    """
    services = node.services
    ref = node.supervisor.find(run_id)
    if ref is not None:
        try:
            await ref.ask(Verb(services.time(), verb, reason))
        except ActorStopped:
            # It was on its way out: the run is in storage, and what comes now is for the next owner, who
            # cannot start before this one has ended.
            with suppress(TimeoutError):
                await within(services.clock, services.settings.lease / 4, ref.wait)
        else:
            return
    await _ask_by_mail(node, run_id, Verb(services.time(), verb, reason))


async def _ask_by_mail(node: Node, run_id: str, verb: Verb) -> None:
    services = node.services
    mail = Mail(secrets.token_hex(10), encode_verb(verb), services.node)
    with services.waiters.listen(mail.id) as news:
        while True:
            # Again and again: it stores the mail once, but wakes the owner each time, and tells whether
            # the run is still there.
            head = await services.storage.post(run_id, mail)
            raw = await services.storage.reply(mail.id)
            if raw is not None:
                break
            if head is None:
                raise RunNotFound(f"run {run_id} does not exist, or was purged after its retention")
            if head.node is None or head.node == services.node:
                node.take_soon(Need(head, "wake"))
            await node.news_or_poll(news)
    error = decode_reply(raw)
    if error is not None:
        raise error
