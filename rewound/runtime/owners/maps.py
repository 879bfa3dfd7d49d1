"""The maps of one run, or of one element, that have an owner here."""

from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from msgspec import Struct

from rewound.actors import Clock, Ref, Supervisor
from rewound.errors import ActorStopped
from rewound.runtime.declare import MapPlan, Plan
from rewound.runtime.engine import Level, Path, Place, RollBackMap, RunMap, StopMap
from rewound.runtime.owners.letters import Close, MapMail, WorkMail
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.values import space_of
from rewound.storage.protocol import Claim

__all__ = ["MapContext", "Maps", "has_maps", "supervisor_for"]


class MapContext(Struct, frozen=True):
    """Where a map is, and what it is made of.

    Args:
        run_id: the run.
        claim: the right to write it.
        generation: the run's.
        prefix: leads from the run to the level's own root: empty, or through elements.
        level: the level that has the map as a step.
        step: that step.
        instance: the level's inputs.
        result_of: reads the level's results.
        crashed: the run's previous owner did not release it.
    """

    run_id: str
    claim: Claim
    generation: int
    prefix: Path
    level: Level
    step: str
    instance: Any
    result_of: Callable[[str], Any]
    crashed: bool = False

    @property
    def plan(self) -> MapPlan:
        """What the map iterates, and how."""
        plan = self.level.plan.steps[self.step].map
        assert plan is not None  # noqa: S101 - only maps have owners
        return plan

    @property
    def place(self) -> Place:
        """Where the map is in its own tree of levels."""
        return self.level.path, self.step

    @property
    def path(self) -> Path:
        """The way from the run to the map."""
        return (*self.prefix, *self.level.path, self.step)

    @property
    def space(self) -> str:
        """The name of its space; elements of an earlier generation stay apart."""
        return space_of(self.generation, self.path)


class Maps:
    """Starts map owners and passes orders on to them.

    Args:
        services: the node's.
        supervisor: where they live; with their parent, and not longer.
        report: takes a key and a message for the parent, never waits.

    Attributes:
        forward: maps whose elements run.
        back: maps that are taken back.
    """

    def __init__(
        self,
        services: Services,
        supervisor: Supervisor | None,
        report: Callable[[Hashable, WorkMail], None],
    ) -> None:
        self._services = services
        self._supervisor = supervisor
        self._report = report
        self._orders = count(1)
        self.forward: dict[Place, Ref[MapMail]] = {}
        self.back: dict[Place, Ref[MapMail]] = {}

    @property
    def busy(self) -> bool:
        """Whether any map has an owner."""
        return bool(self.forward or self.back)

    def start(self, context: MapContext, order: RunMap | RollBackMap) -> None:
        """Start the owner of a map, to run its elements or to take them back; it adopts what is stored."""
        owners = self.forward if isinstance(order, RunMap) else self.back
        owners[context.place] = self._start(context, order)

    def stop(self, effect: StopMap) -> None:
        """Have a map begin no further element."""
        _signal(self.forward.get((effect.path, effect.step)), "stop", effect)

    def close(self, *, now: bool) -> None:
        """Have all of them go, because the node closes."""
        for ref in [*self.forward.values(), *self.back.values()]:
            _signal(ref, "close", Close(now))

    def ended(self, place: Place) -> None:
        """Forget the owner of a map, which has reported."""
        self.forward.pop(place, None)
        self.back.pop(place, None)

    def _start(self, context: MapContext, order: RunMap | RollBackMap) -> Ref[MapMail]:
        from rewound.runtime.owners.map_owner import MapOwner  # noqa: PLC0415 - elements have maps themselves

        # One that has reported may still be ending when the next order comes: their keys differ.
        key = (context.space, next(self._orders))
        owner = MapOwner(self._services, context, order, key=key, report=self._report)
        assert self._supervisor is not None  # noqa: S101 - there is one where there are maps
        return self._supervisor.start(owner)


def _signal(ref: Ref[MapMail] | None, key: str, message: Any) -> None:
    if ref is not None:
        try:
            ref.signal(key, message)
        except ActorStopped:
            return  # it has reported its end


def has_maps(plan: Plan) -> bool:
    """Whether a reactor, or what it composes, has maps."""
    steps = plan.steps.values()
    return any(step.map is not None or (step.child is not None and has_maps(step.child)) for step in steps)


@asynccontextmanager
async def supervisor_for(
    plan: Plan, clock: Clock, crashed: Callable[[Hashable, Exception], object]
) -> AsyncGenerator[Supervisor | None]:
    """Have a supervisor for the owners of a plan's maps: they live as long as the block, and not longer.

    Args:
        plan: what runs; without maps it needs no supervisor.
        clock: the node's.
        crashed: called with a map owner's key and exception when it has crashed.
    """
    if not has_maps(plan):
        yield None
        return
    async with Supervisor(clock=clock, on_give_up=crashed) as maps:
        yield maps
