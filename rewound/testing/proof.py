"""What ran after a crash, held against what ran before it and what runs without one.

A body that began proves something: it begins only when what it builds on is in storage. So if one that
another one built upon runs again after a crash, it was acted upon before it was recorded, or forgotten.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewound import Reactor, plan_of
from rewound.testing.ledger import Entry

__all__ = ["check_repeats", "check_undone", "proves"]

Reactors = Mapping[str, type[Reactor[Any]]]


def check_repeats(entries: Sequence[Entry], whole: Sequence[Entry], died: float, reactors: Reactors) -> None:
    """See that nothing ran more often than without a crash, but for what the crash cut off.

    Args:
        entries: what ran.
        whole: what ran without a crash.
        died: when the crash was. What ended earlier has been recorded; of what ended then, the crash may
            have lost the end.
        reactors: the reactor of each run.

    Raises:
        AssertionError: something ran too often.
    """
    usual = _grouped(whole)
    for same, group in _grouped(entries).items():
        spare = len(group) - max(1, len(usual[same]))
        if spare <= 0:
            continue
        before = [entry for entry in group if entry.life == 1]
        if spare > 1 or not before:
            raise AssertionError(f"the {group[0]} ran {len(group)} times")
        last = before[-1]
        if last.ended is None:
            continue
        if last.ended < died:
            raise AssertionError(f"the {last} ran again, though it had been recorded")
        for later in entries[last.last :]:
            if later.life == 1 and proves(reactors, later, last):
                raise AssertionError(f"the {last} ran again, though the {later} had begun upon it")


def check_undone(entries: Sequence[Entry], whole: Iterable[Entry], died: float) -> None:
    """See that whatever is taken back without a crash was taken back.

    Args:
        entries: what ran.
        whole: what ran without a crash.
        died: when the crash was; an end that it lost may never have counted.

    Raises:
        AssertionError: a step that had ended was forgotten.
    """
    taken_back = {_step(entry) for entry in whole if entry.kind != "forward"}
    handled = {_step(entry) for entry in entries if entry.kind != "forward"}
    for entry in entries:
        lost = entry.life == 1 and entry.ended == died
        ended = entry.kind == "forward" and entry.end == "returned" and not lost
        if ended and _step(entry) in taken_back - handled:
            raise AssertionError(f"the {entry} was never taken back")


def _grouped(entries: Iterable[Entry]) -> dict[tuple[str, int], list[Entry]]:
    groups: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.same].append(entry)
    return groups


def _step(entry: Entry) -> tuple[str, str, int]:
    return entry.run_id, entry.path, entry.generation


def proves(reactors: Reactors, later: Entry, earlier: Entry) -> bool:
    """Tell whether `later`, which began after `earlier` had ended, proves that its end was recorded.

    Args:
        reactors: the reactor of each run.
        later: what began.
        earlier: what had ended.
    """
    if later.run_id != earlier.run_id:
        return False
    if later.generation != earlier.generation:
        return later.generation > earlier.generation
    one, two = later.path.split("/"), earlier.path.split("/")
    if one == two and (later.kind != earlier.kind or later.attempt > earlier.attempt):
        return True
    if later.kind == "forward":
        return earlier.kind == "forward" and _needs(plan_of(reactors[later.run_id]), one, two)
    # Handlers of one level run one at a time, and only when nothing is in flight in it or below it.
    inner = two[: len(one) - 1] == one[:-1]
    outer = earlier.kind != "forward" and one[: len(two) - 1] == two[:-1]
    return inner or outer


def _needs(plan: Any, later: Sequence[str], earlier: Sequence[str]) -> bool:
    """Tell whether a step needs another one, wherever in the tree of reactors the two are."""
    if not later or not earlier:
        return False
    name, other = later[0], earlier[0]
    if name != other:
        return other in _all_needs(plan, name)
    step = plan.steps[name]
    if step.child is not None:
        return _needs(step.child, later[1:], earlier[1:])
    if step.map is None:
        return False
    one, two = int(later[1]), int(earlier[1])
    if one != two:
        return one > two and not step.map.concurrent
    return _needs(step.map.child, later[2:], earlier[2:])


def _all_needs(plan: Any, name: str) -> set[str]:
    found = set(plan.steps[name].needs)
    for need in plan.steps[name].needs:
        found |= _all_needs(plan, need)
    return found
