"""Journals, cells, claims, leases, mail, alarms and notices on memory, SQLite or Redis.

`protocol` says what a backend promises. Memory and SQLite keep their rules in `rules`, `spaces` and
`sweeping`, over `entries.Tables`; Redis has them in Lua. `Encoded` and `Faults` wrap any of the three.
"""

from rewound.storage.encoded import Encoded, PayloadCodec
from rewound.storage.faults import Fault, Faults
from rewound.storage.memory import MemoryStorage
from rewound.storage.opening import open_storage
from rewound.storage.protocol import (
    Answer,
    Appended,
    Attention,
    Cells,
    Check,
    Claim,
    Commit,
    Created,
    Head,
    Journal,
    Mail,
    Need,
    NewRun,
    Node,
    Notice,
    Page,
    Query,
    Space,
    Storage,
)

__all__ = [
    "Answer",
    "Appended",
    "Attention",
    "Cells",
    "Check",
    "Claim",
    "Commit",
    "Created",
    "Encoded",
    "Fault",
    "Faults",
    "Head",
    "Journal",
    "Mail",
    "MemoryStorage",
    "Need",
    "NewRun",
    "Node",
    "Notice",
    "Page",
    "PayloadCodec",
    "Query",
    "Space",
    "Storage",
    "open_storage",
]
