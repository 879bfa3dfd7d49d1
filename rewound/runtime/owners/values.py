"""The values that bodies read: inputs and results, decoded from a run's state at each of its levels."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from rewound.errors import StorageError
from rewound.runtime.declare import Plan, Reactor, StepPlan, decode_result, load_inputs
from rewound.runtime.engine import Level, Path, RunState
from rewound.storage.protocol import Storage

__all__ = ["Site", "Values", "space_of"]

_totals = msgspec.msgpack.Decoder(int)


class Site(Struct, frozen=True):
    """Where a state is stored: a run's, or that of an element of a map.

    Args:
        storage: the storage.
        run_id: the run.
        prefix: leads from the run to this state: empty, or the element that it is of.
        generation: the run's, if this is an element's.
    """

    storage: Storage
    run_id: str
    prefix: Path = ()
    generation: int | None = None


def space_of(generation: int, path: Path) -> str:
    """Name the space of a map; elements of an earlier generation stay apart."""
    return f"{generation}:{'/'.join(path)}"


class Values:
    """Inputs and results of one run, or of one element.

    Args:
        site: where it is stored.
        state: its state.
        instance: its inputs; may be left out where only results are read.
        broken: told of a storage from which a map's results cannot be read: that is no failure of the body
            that reads them, whatever this makes of it (S11).
    """

    def __init__(
        self,
        site: Site,
        state: RunState,
        instance: Reactor[Any] | None = None,
        broken: Callable[[StorageError], object] | None = None,
    ) -> None:
        self._site = site
        self._state = state
        self._broken = broken
        self._instances: dict[Path, tuple[bytes, Any]] = {}
        if instance is not None:
            self._instances[()] = (state.inputs, instance)

    def instance(self, level: Level) -> Any:
        """Return a level's inputs as an instance of its reactor."""
        known = self._instances.get(level.path)
        if known is None or known[0] is not level.state.inputs:
            known = (level.state.inputs, load_inputs(level.plan, level.state.inputs))
            self._instances[level.path] = known
        return known[1]

    def of(self, level: Level) -> Callable[[str], Any]:
        """Return the function that reads a level's results by step. It raises `KeyError` if there is none."""
        return lambda step: self.read(level.plan, level.state, step, level.path)

    def read(self, plan: Plan, state: RunState, step: str, path: Path = ()) -> Any:
        """Decode a completed step's result: a composed child's is that of the step it returns.

        Args:
            plan: the plan of the level.
            state: its state.
            step: the step.
            path: leads to the level.

        Raises:
            KeyError: the step has no result. A map that did not complete has those of what began.
        """
        definition = plan.steps[step]
        if definition.child is not None:
            inner, returns = state.children[step], definition.child.returns
            return None if returns is None else self.read(definition.child, inner, returns, (*path, step))
        value = state.steps[step].value
        if definition.map is not None and (value is not None or step in state.counts):
            total = state.counts[step][0] if value is None else _totals.decode(value)
            return self._results(definition, (*path, step), total)
        if value is None:
            raise KeyError(step)
        return decode_result(definition, value)

    def _results(self, step: StepPlan, path: Path, total: int) -> Any:
        from rewound.runtime.owners.readers import results_of  # noqa: PLC0415 - elements have values themselves

        site = self._site
        generation = self._state.generation if site.generation is None else site.generation
        where = Site(site.storage, site.run_id, (*site.prefix, *path), generation)
        return results_of(where, step, total, self._broken)
