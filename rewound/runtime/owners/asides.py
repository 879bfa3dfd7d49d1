"""The rollback failures of elements, kept beside their map: nobody's memory grows with them (R5, R8)."""

import msgspec
from msgspec import Struct

from rewound.runtime.engine import RunState
from rewound.runtime.outcomes import RollbackFailure
from rewound.runtime.owners.flight import Flight
from rewound.runtime.owners.maps import MapContext
from rewound.runtime.owners.values import space_of

__all__ = ["Aside", "aside_of", "aside_of_one", "spaces_with_failures"]


class Aside(Struct, array_like=True):
    """An element's rollback failures. `nested` names the spaces of maps inside the element that have more."""

    failures: list[RollbackFailure]
    nested: list[str] = []


def aside_of(context: MapContext, flight: Flight) -> bytes:
    """Encode an element's rollback failures, with their place."""
    path = "/".join(context.path)
    failures = [
        msgspec.structs.replace(each, map_step=path, element_index=flight.index)
        for each in flight.state.rollback_failures
    ]
    prefix = (*context.path, str(flight.index))
    return msgspec.msgpack.encode(
        Aside(failures, spaces_with_failures(flight.state, context.generation, prefix))
    )


def aside_of_one(context: MapContext, index: int, error: str, message: str) -> bytes:
    """Encode the one failure of an element that could not be taken back at all."""
    failure = RollbackFailure(context.step, "undo", error, message, "/".join(context.path), index)
    return msgspec.msgpack.encode(Aside([failure]))


def spaces_with_failures(state: RunState, generation: int, prefix: tuple[str, ...] = ()) -> list[str]:
    """Name the spaces of the maps below a state whose elements have rollback failures."""
    found = [space_of(generation, (*prefix, name)) for name, left in state.maps_left.items() if left]
    for name, child in state.children.items():
        found += spaces_with_failures(child, generation, (*prefix, name))
    return found
