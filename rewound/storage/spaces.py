"""The rules of spaces, over `Tables`: who may write cells, what a repeat is, how much is read at once."""

from rewound.errors import ClaimLost, InputError, JournalMismatch
from rewound.storage.entries import SpaceEntry, Tables
from rewound.storage.protocol import Cells, Space
from rewound.storage.refusals import lost, other_version, unreachable
from rewound.storage.rules import find, holds

__all__ = ["MOST_CELLS", "NO_SPACE", "page", "put", "read"]

MOST_CELLS = 1000
"""Cells that one read may ask for, so that none blocks a server for long."""

NO_SPACE = Space(0, b"", {})
"""What a space is before its first write."""


def put(tables: Tables, cells: Cells, now: float) -> int:
    """Write cells and header under the claim (promises 1 and 2); return the space's new version."""
    entry = find(tables, cells.claim.run_id, now)
    if entry is None:
        raise JournalMismatch(unreachable(cells))
    space = tables.space(entry, cells.space) or SpaceEntry(cells.space)
    if space.version and space.id == cells.id:
        return space.version
    if not holds(entry, cells.claim):
        raise ClaimLost(lost(cells.claim, entry))
    if space.version != cells.expected:
        raise JournalMismatch(other_version(cells, space))
    space.version += 1
    space.id = cells.id
    tables.write_space(entry, space, cells.header, cells.cells)
    return space.version


def read(tables: Tables, run_id: str, space: str, numbers: range, now: float) -> Space | None:
    """Read a page of a space; `None` if there is no such run."""
    entry = find(tables, run_id, now)
    if entry is None:
        return None
    return tables.read_space(entry, space, numbers) or NO_SPACE


def page(start: int, count: int) -> range:
    """Return the numbers of a page.

    Raises:
        InputError: there are too many for one read.
    """
    if count > MOST_CELLS:
        message = f"{count} cells are too many for one read; read pages of at most {MOST_CELLS}"
        raise InputError("space", {"count": message})
    return range(start, start + count)
