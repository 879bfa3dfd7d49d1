"""Plain functions over a graph of names: each step to the steps that it needs."""

from collections.abc import Mapping

from rewound.errors import DefinitionError

__all__ = ["ancestors", "check_cycles", "dependents"]

Graph = Mapping[str, tuple[str, ...]]


def ancestors(needs: Graph, step: str) -> set[str]:
    """List everything that a step needs, directly or not."""
    found: set[str] = set()
    waiting = list(needs[step])
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += needs[each]
    return found


def dependents(needs: Graph) -> dict[str, tuple[str, ...]]:
    """Turn the graph round: each step to the steps that need it, in definition order."""
    return {step: tuple(other for other in needs if step in needs[other]) for step in needs}


def check_cycles(needs: Graph, subject: str) -> None:
    """Refuse steps that need each other.

    Args:
        needs: the graph.
        subject: the reactor, for the message.

    Raises:
        DefinitionError: with the cycle spelt out.
    """
    open_ones = {step for step in needs if step in ancestors(needs, step)}
    if not open_ones:
        return
    path = [min(open_ones, key=list(needs).index)]
    while path[-1] not in path[:-1]:
        path.append(next(need for need in needs[path[-1]] if need in open_ones))
    cycle = path[path.index(path[-1]) :]
    raise DefinitionError(f"{subject}: the steps {' <- '.join(cycle)} need each other; no step could start.")
