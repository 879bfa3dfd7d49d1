"""The reactors that a runtime knows."""

from collections.abc import Iterable
from typing import Any

from rewound.errors import DefinitionError, RunNotFound
from rewound.runtime.declare import Plan, Reactor, plan_of, plans_for, reactors_defined
from rewound.storage.protocol import Head

__all__ = ["Catalogue"]


class Catalogue:
    """Plans by stored name.

    Args:
        reactors: what the runtime was limited to; `None`: every reactor that is defined.

    Attributes:
        plans: kept up to date in place, because the node looks things up here, too.
    """

    def __init__(self, reactors: Iterable[type[Reactor[Any]]] | None) -> None:
        self._reactors = None if reactors is None else list(reactors)
        self.plans: dict[str, Plan] = {}

    def open(self) -> None:
        """Plan what there is now; raises `DefinitionError` for a reactor that cannot be planned."""
        if self._reactors is not None:
            self.plans = plans_for(self._reactors)
        else:
            self.plans = {plan.name: plan for plan in map(plan_of, reactors_defined())}

    def plan(self, reactor: type[Reactor[Any]]) -> Plan:
        """Return a reactor's plan; the newest class of a stored name counts.

        Raises:
            DefinitionError: the reactor cannot be planned, or is not among those of the runtime.
        """
        plan = plan_of(reactor)
        if self._reactors is not None and self.plans.get(plan.name) is not plan:
            raise DefinitionError(
                f"{plan.name} is not among the reactors of this runtime; add it to reactors="
            )
        self.plans[plan.name] = plan
        return plan

    def plan_of(self, head: Head, reactor: type[Reactor[Any]] | None) -> Plan:
        """Return the plan of a stored run.

        Args:
            head: the run's.
            reactor: what the caller takes it for, if he says so.

        Raises:
            DefinitionError: the runtime does not know the run's reactor.
            RunNotFound: the run is of another reactor.
        """
        plan = self.plans.get(head.reactor) if reactor is None else self.plan(reactor)
        if plan is None:
            raise DefinitionError(
                f"run {head.run_id} is of reactor {head.reactor!r}, which this runtime does not know"
            )
        if plan.name != head.reactor:
            raise RunNotFound(f"run {head.run_id} is of reactor {head.reactor!r}, not {plan.name!r}")
        return plan
