"""Verbs and their replies as mail: how an undo, a cancel or a retry reaches a run on another node."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from rewound import errors
from rewound.runtime.engine.messages import Verb
from rewound.storage.protocol import Answer, Mail

__all__ = ["answer", "decode_reply", "decode_verb", "encode_reply", "encode_verb"]


class _Reply(Struct, array_like=True, frozen=True):
    """An accepted verb has no error."""

    error: str = ""
    message: str = ""


_verbs = msgspec.msgpack.Decoder(Verb)
_replies = msgspec.msgpack.Decoder(_Reply)
encode_verb = msgspec.msgpack.Encoder().encode
"""Encode a verb for the mail."""


def decode_verb(body: bytes) -> Verb:
    """Decode a verb; raises `StorageError` for mail that is none."""
    try:
        return _verbs.decode(body)
    except msgspec.MsgspecError as error:
        raise errors.StorageError(f"a piece of mail cannot be read by this version: {error}") from error


def encode_reply(error: errors.RewoundError | None) -> bytes:
    """Encode what the owner answers: `None` for an accepted verb."""
    reply = _Reply() if error is None else _Reply(type(error).__name__, str(error))
    return msgspec.msgpack.encode(reply)


def decode_reply(raw: bytes) -> errors.VerbError | None:
    """Return the error that the owner answered with, or `None`."""
    reply = _replies.decode(raw)
    if not reply.error:
        return None
    kind = getattr(errors, reply.error, errors.VerbError)
    known = isinstance(kind, type) and issubclass(kind, errors.VerbError)
    return kind(reply.message) if known else errors.VerbError(f"{reply.error}: {reply.message}")


def answer(mail: Mail, at: float, ask: Callable[[Verb], errors.RewoundError | None]) -> Answer:
    """Ask for what a piece of mail says, and answer it; mail that cannot be read is refused."""
    try:
        verb = decode_verb(mail.body)
    except errors.StorageError as unreadable:
        return Answer(mail.id, encode_reply(unreadable))
    return Answer(mail.id, encode_reply(ask(Verb(at, verb.verb, verb.reason))))
