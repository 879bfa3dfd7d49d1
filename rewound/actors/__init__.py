"""Small actors: a task, its mailbox, its supervisor. Knows nothing of storage or sagas."""

from rewound.actors.alarms import Alarm
from rewound.actors.clock import Clock, SystemClock
from rewound.actors.virtual import VirtualClock

__all__ = ["Alarm", "Clock", "SystemClock", "VirtualClock"]
