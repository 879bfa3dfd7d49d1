"""What a run's owner can be told, besides the engine's messages."""

from msgspec import Struct

from rewound.runtime.engine.levels import Place
from rewound.runtime.engine.messages import Message

__all__ = ["Close", "HandlerCut", "OwnerMail", "ReadMail", "Wake"]


class ReadMail(Struct, frozen=True):
    """There may be mail in storage."""


class Wake(Struct, frozen=True):
    """A slot was granted."""


class Close(Struct, frozen=True):
    """The node closes: start nothing more and give the run up. `now`: cut off what still runs."""

    now: bool = False


class HandlerCut(Struct, frozen=True):
    """An undo or a compensate was cut off because the node closes; it runs again elsewhere."""

    place: Place


OwnerMail = Message | ReadMail | Wake | Close | HandlerCut
