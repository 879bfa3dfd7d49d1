"""What a run's owner can be told, besides the engine's messages."""

from msgspec import Struct

from rewound.runtime.engine.follow import StopMap
from rewound.runtime.engine.levels import Place
from rewound.runtime.engine.messages import Message, Result, Tick

__all__ = [
    "Close",
    "ElementMail",
    "HandlerCut",
    "MapBroken",
    "MapClosed",
    "MapMail",
    "MapStuck",
    "OwnerMail",
    "ReadMail",
    "Stored",
    "Wake",
    "WorkMail",
]


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


class MapClosed(Struct, frozen=True):
    """A map's owner has gone, because the node closes; nothing of the map is lost."""

    place: Place


class MapBroken(Struct, frozen=True):
    """Something below cannot go on: storage failed, the claim is lost, or a map's owner crashed."""

    place: Place
    error: Exception


class MapStuck(Struct, frozen=True):
    """A map's elements have killed their process again and again."""

    reason: str


class ElementMail(Struct, frozen=True):
    """Something happened in an element of a map."""

    index: int
    message: "WorkMail"


class Stored(Struct, frozen=True):
    """More rows of a map's source are stored; or it is over: at its end, or with `broken`."""

    broken: Result | None = None


WorkMail = Message | HandlerCut | MapClosed | MapBroken | MapStuck
"""What becomes of bodies, handlers and maps."""

OwnerMail = WorkMail | ReadMail | Wake | Close

MapMail = ElementMail | Stored | StopMap | Wake | Close | Tick
