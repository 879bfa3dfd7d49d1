"""What is being done for one state, a run's or an element's: its bodies, its handlers, its maps."""

from collections.abc import Callable, Collection, Hashable
from typing import Any

from rewound.actors import Supervisor
from rewound.runtime.declare import Plan, Reactor
from rewound.runtime.engine import (
    CutBody,
    Open,
    Place,
    RollBackMap,
    RunBody,
    RunHandler,
    RunMap,
    RunState,
    StopMap,
    follow,
    level_at,
)
from rewound.runtime.owners.bodies import Bodies
from rewound.runtime.owners.hands import Hands
from rewound.runtime.owners.letters import MapBroken, WorkMail
from rewound.runtime.owners.maps import MapContext, Maps
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.values import Site, Values
from rewound.storage.protocol import Claim

__all__ = ["Work"]


Beginning = RunBody | RunHandler | Open | RunMap | RollBackMap


class Work:
    """Does what a state calls for, and knows what of it is being done.

    Args:
        services: the node's.
        plan: what runs.
        site: where the state is stored.
        claim: the right to write it.
        instance: the inputs.
        state: the state.
        hands: the tasks that run bodies.
        maps: where the owners of maps live; `None` if the plan has none.
        crashed: the run's previous owner did not release it.
        report: takes a key and a message, never waits.
    """

    __slots__ = ("_claim", "_crashed", "_plan", "_services", "_site", "_state", "bodies", "maps", "values")

    def __init__(
        self,
        services: Services,
        plan: Plan,
        site: Site,
        *,
        claim: Claim,
        instance: Reactor[Any],
        state: RunState,
        hands: Hands,
        maps: Supervisor | None,
        crashed: bool,
        report: Callable[[Hashable, WorkMail], None],
    ) -> None:
        self._services = services
        self._plan = plan
        self._site = site
        self._claim = claim
        self._state = state
        self._crashed = crashed
        self.values = Values(
            site, state, instance, lambda error: report("storage", MapBroken(((), ""), error))
        )
        self.bodies = Bodies(
            services, plan, site, values=self.values, state=state, hands=hands, report=report
        )
        self.maps = Maps(services, maps, report)

    @property
    def busy(self) -> bool:
        """Whether user code runs, or a map has an owner."""
        return self.bodies.busy or self.maps.busy

    def free(self, place: Place) -> None:
        """Free the place of what has reported its end."""
        self.bodies.steps.pop(place, None)
        self.bodies.handlers.pop(place, None)
        self.maps.ended(place)

    def close(self, *, now: bool) -> None:
        """Let what runs come to its end, or cut it off (`now`), because the node closes."""
        if now:
            self.bodies.cut_all()
        self.maps.close(now=now)

    def act(self, at: float, granted: Collection[Place], *, closing: bool) -> None:
        """Do what the state calls for and is not being done.

        Args:
            at: the storage's clock.
            granted: where a slot was taken for a body already.
            closing: cut off, but begin nothing: that is left to the next owner.
        """
        running = {*self.bodies.steps, *self.maps.forward}
        handling = {*self.bodies.handlers, *self.maps.back}
        for effect in follow(self._plan, self._state, at, bodies=running, handlers=handling):
            match effect:
                case CutBody(path, step):
                    self.bodies.cut((path, step))
                case StopMap():
                    self.maps.stop(effect)
                case _ if not closing:
                    self._begin(effect, granted)
                case _:
                    pass

    def _begin(self, effect: Beginning, granted: Collection[Place]) -> None:
        match effect:
            case RunBody(path, step):
                self.bodies.start(effect, granted=(path, step) in granted)
            case RunHandler():
                self.bodies.start_handler(effect)
            case Open():
                self.bodies.open(effect)
            case _:
                self.maps.start(self._context(effect), effect)

    def _context(self, effect: RunMap | RollBackMap) -> MapContext:
        level = level_at(self._plan, self._state, effect.path)
        assert level is not None  # noqa: S101 - effects name open levels
        site = self._site
        return MapContext(
            run_id=site.run_id,
            claim=self._claim,
            generation=self._state.generation if site.generation is None else site.generation,
            prefix=site.prefix,
            level=level,
            step=effect.step,
            instance=self.values.instance(level),
            result_of=self.values.of(level),
            crashed=self._crashed,
        )
