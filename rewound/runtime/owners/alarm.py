"""When a run must be looked at again: an alarm in memory while its owner lives, else one in storage."""

from collections.abc import Callable

from rewound.actors import Alarm
from rewound.runtime.owners.services import Services

__all__ = ["RunAlarm"]

PARK_AFTER = 2
"""Leases: a run that waits longer than that, and for nothing but its alarm, leaves memory."""


class RunAlarm:
    """The next alarm of one run.

    Args:
        services: the node's clock.
        rang: called when it is due, without arguments.
    """

    __slots__ = ("_alarm", "_rang", "_services")

    def __init__(self, services: Services, rang: Callable[[], object]) -> None:
        self._services = services
        self._rang = rang
        self._alarm: Alarm | None = None

    def set(self, due: float | None) -> None:
        """Ring at `due` on the storage's clock, in place of what was set before; `None`: not at all."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = (
            None if due is None else self._services.clock.alarm(self._services.alarm_at(due), self._rang)
        )

    def is_distant(self, due: float) -> bool:
        """Whether it is worth leaving memory until then."""
        return due - self._services.time() > PARK_AFTER * self._services.settings.lease
