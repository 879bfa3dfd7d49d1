"""The two ways in which a map's owner takes elements through their lives: forward, and back."""

from typing import Protocol

from msgspec import Struct

from rewound.runtime.engine import StopMap
from rewound.runtime.owners.crew import Crew
from rewound.runtime.owners.flight import Flight
from rewound.runtime.owners.letters import Stored, WorkMail
from rewound.runtime.owners.map_store import MapStore
from rewound.runtime.owners.maps import MapContext
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.sources import RowSource

__all__ = ["MapParts", "Way"]


class MapParts(Struct, frozen=True):
    """What both ways work on.

    Args:
        services: the node's.
        context: the map.
        store: what is stored of it.
        rows: what its elements are made of.
        crew: its elements in flight.
    """

    services: Services
    context: MapContext
    store: MapStore
    rows: RowSource
    crew: Crew


class Way(Protocol):
    """How to carry out one order."""

    async def adopt(self) -> bool:
        """Take up the elements that were in flight; tell if bodies of them were at work."""
        ...

    def take_in(self, message: StopMap | Stored) -> None:
        """Take note of an order to stop, or of more rows."""
        ...

    def next(self) -> int | None:
        """Have the next element come up, if one may. Moves a watermark."""
        ...

    async def begin(self, index: int) -> None:
        """Begin that element; it goes in flight, unless it is at its end at once."""
        ...

    def settle(self, flight: Flight) -> None:
        """Count an element that is at its end, and have it stored."""
        ...

    def stored(self) -> None:
        """Do what must not be done before everything is stored."""
        ...

    def result(self) -> WorkMail | None:
        """Say how the order was carried out, once it was."""
        ...
