"""The values that bodies read: inputs and results, decoded from a run's state at each of its levels."""

from collections.abc import Callable
from typing import Any

from rewound.runtime.declare import Plan, Reactor, decode_result, load_inputs
from rewound.runtime.engine import Level, Path, RunState

__all__ = ["Values", "value_of"]


def value_of(plan: Plan, state: RunState, step: str) -> Any:
    """Decode the result of a completed step; a composed child's is that of the step it returns.

    Raises:
        KeyError: the step has no result.
    """
    child = plan.steps[step].child
    if child is not None:
        inner = state.children[step]
        return None if child.returns is None else value_of(child, inner, child.returns)
    value = state.steps[step].value
    if value is None:
        raise KeyError(step)
    return decode_result(plan.steps[step], value)


class Values:
    """Inputs and results of one run.

    Args:
        state: its state.
        instance: its inputs.
    """

    def __init__(self, state: RunState, instance: Reactor[Any]) -> None:
        self._instances: dict[Path, tuple[bytes, Reactor[Any]]] = {(): (state.inputs, instance)}

    def instance(self, level: Level) -> Reactor[Any]:
        """Return a level's inputs as an instance of its reactor."""
        known = self._instances.get(level.path)
        if known is None or known[0] is not level.state.inputs:
            known = (level.state.inputs, load_inputs(level.plan, level.state.inputs))
            self._instances[level.path] = known
        return known[1]

    def of(self, level: Level) -> Callable[[str], Any]:
        """Return the function that reads a level's results by step."""
        return lambda step: value_of(level.plan, level.state, step)
