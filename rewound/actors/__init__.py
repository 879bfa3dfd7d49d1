"""Small actors: a task, its mailbox, its supervisor. Knows nothing of storage or sagas."""

from rewound.actors.actor import Actor
from rewound.actors.alarms import Alarm
from rewound.actors.clock import Clock, SystemClock
from rewound.actors.host import HostTask
from rewound.actors.letter import Letter
from rewound.actors.mailbox import Mailbox
from rewound.actors.ref import Ref
from rewound.actors.slots import Slots, SlotWait
from rewound.actors.supervisor import Supervisor
from rewound.actors.virtual import VirtualClock

__all__ = [
    "Actor",
    "Alarm",
    "Clock",
    "HostTask",
    "Letter",
    "Mailbox",
    "Ref",
    "SlotWait",
    "Slots",
    "Supervisor",
    "SystemClock",
    "VirtualClock",
]
