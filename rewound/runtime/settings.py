"""What a runtime can be told about its limits and times."""

from msgspec import Struct

from rewound.errors import DefinitionError

__all__ = ["Settings"]


class Settings(Struct, frozen=True):
    """A runtime's limits and times, checked; times are seconds.

    Args:
        concurrency: bodies in flight at most.
        max_owners: live runs at most; beyond it `spawn` waits and takeover pauses.
        lease: how long this node is believed alive after its last heartbeat.
        grace: how long shutdown lets bodies finish before it cancels them.
        retention: how long ended runs are kept.
        max_recoveries: takeovers in a row, with a body in flight and nothing settled in between, before
            a run is parked as stuck.
        max_payload: bytes of one stored value at most.
    """

    concurrency: int = 1000
    max_owners: int = 10_000
    lease: float = 10.0
    grace: float = 10.0
    retention: float = 604_800.0
    max_recoveries: int = 5
    max_payload: int = 1_048_576

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the option."""
        for name in ("concurrency", "max_owners", "max_payload"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise DefinitionError(f"Runtime({name}={value!r}): give a positive int")
        if self.max_recoveries < 0:
            raise DefinitionError(f"Runtime(max_recoveries={self.max_recoveries!r}): give 0 or more")
        for name, least in (("lease", 0.1), ("grace", 0.0), ("retention", 0.0)):
            if not getattr(self, name) >= least:
                raise DefinitionError(
                    f"Runtime({name}={getattr(self, name)!r}): give at least {least:g} seconds"
                )
