"""Test what you build on Rewound: storages that fail on plan, time set by hand, and crashes everywhere.

crash_sweep                the same scenario again and again, each time crashing at another operation
Scenario, Ledger, Sweep    what it plays, what bodies write down, what it found
Faults, Fault              a storage that fails, hangs or dies on plan
MemoryStorage              a storage that several runtimes of one test may share
VirtualClock               time that stands still until a test moves it
"""

from rewound.actors import VirtualClock
from rewound.storage import Fault, Faults, MemoryStorage
from rewound.testing.ledger import Entry, Ledger
from rewound.testing.scenario import Scenario
from rewound.testing.sweep import Sweep, crash_sweep

__all__ = [
    "Entry",
    "Fault",
    "Faults",
    "Ledger",
    "MemoryStorage",
    "Scenario",
    "Sweep",
    "VirtualClock",
    "crash_sweep",
]
