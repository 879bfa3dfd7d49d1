"""Starting owners, so that the node knows each of them until it has ended for good."""

import contextvars

from rewound.actors import Supervisor
from rewound.runtime.owners.run_owner import RunOwner
from rewound.runtime.owners.services import Services

__all__ = ["launch"]


def launch(services: Services, supervisor: Supervisor, owner: RunOwner, context: contextvars.Context) -> None:
    """Start an owner; after a crash another one goes on from what is stored.

    Args:
        services: the node's; `owners` has the owner from now until `supervisor` says it has ended.
        supervisor: where it lives.
        owner: not started before.
        context: the context variables that its bodies see.

    Raises:
        ActorError: an owner of this run is alive, or the supervisor does not run.
    """
    run_id, plan = owner.run_id, owner.plan

    def again() -> RunOwner:
        services.owners[run_id] = successor = RunOwner(services, plan, run_id, crashed=True)
        return successor

    supervisor.start(owner, factory=again, context=context)
    services.owners[run_id] = owner
