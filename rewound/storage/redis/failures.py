"""What to do about an error: each kind has one remedy."""

from enum import Enum

from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)

__all__ = ["DISCONNECTED", "Remedy", "remedy_for"]

DISCONNECTED = (RedisError, OSError, TimeoutError)
"""What a connection may raise when it is, or must be treated as, lost. Lanes read error replies as values."""


class Remedy(Enum):
    """How to go on with a request that was answered with an error."""

    TEACH = "load the scripts, then repeat"
    WAIT = "repeat after a while"
    RECONNECT = "repeat on a new connection"
    REFUSE = "give up"


def remedy_for(error: Exception) -> Remedy:
    """Return what to do about an error reply."""
    for kind, remedy in BY_KIND:
        if isinstance(error, kind):
            return remedy
    text = str(error)
    for code, remedy in BY_CODE.items():
        if text.startswith(f"{code} ") or f"-{code} " in text:
            return remedy
    return Remedy.REFUSE


BY_KIND: tuple[tuple[type[RedisError], Remedy], ...] = (
    (NoScriptError, Remedy.TEACH),
    (AskError, Remedy.WAIT),
    (ReadOnlyError, Remedy.RECONNECT),
    (MasterDownError, Remedy.RECONNECT),
    (ClusterDownError, Remedy.WAIT),
    (TryAgainError, Remedy.WAIT),
    (OutOfMemoryError, Remedy.WAIT),
)

BY_CODE = {
    "BUSY": Remedy.WAIT,  # somebody's script takes long
    "MISCONF": Remedy.WAIT,  # the disk is full
    "NOREPLICAS": Remedy.WAIT,  # the server wants replicas that are away
    "OOM": Remedy.WAIT,
    "READONLY": Remedy.RECONNECT,
}
"""For errors without a class; and Redis 6 wraps those of commands inside a script in text of its own."""
