"""The crash sweep: one scenario, crashed once at each of its storage operations."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from rewound.testing.link import WRITES
from rewound.testing.scenario import Scenario
from rewound.testing.trial import Trial

__all__ = ["Sweep", "crash_sweep"]

When = Literal["before", "after", "late"]


class Sweep(Struct, frozen=True):
    """What a sweep did.

    Args:
        operations: how many storage operations the scenario needs without a crash.
        crashes: how many crashes it went through.
    """

    operations: int
    crashes: int


async def crash_sweep(
    scenario: Scenario,
    *,
    every: int = 1,
    whens: Sequence[When] = ("before", "after", "late"),
    limit: float = 600.0,
) -> Sweep:
    """Crash a scenario at each of its storage operations, recover it each time, and check what must hold.

    It is played once to count its operations; then for each operation and each of `whens`: the process
    dies `before` the operation takes effect; or `after` it, so that only its answer is lost; or, if it is a
    write, it dies and the write arrives `late`, when another node has taken over. Then another runtime is
    entered on the same storage and plays the scenario again, as a program does that is started once more.
    All of it is in memory and on a virtual clock: an hour takes no time. Checked each time:

    1. `play` returns, every run has ended, and no node, dead or alive, owns one.
    2. What it returns is allowed (`Scenario.allows`), and `Scenario.check` has no objection.
    3. Every body, undo and compensate ran as often as without a crash; once more if the crash cut it off
       or lost its end. One that was recorded did not run again, nor did one that another one built upon.
    4. A late write of a dead node changed nothing.

    Args:
        scenario: what to play.
        every: crash only at each so-manieth operation. Default 1.
        whens: which of the three crashes. Default: all.
        limit: seconds of the virtual clock after which it is given up. Default 600.

    Raises:
        AssertionError: a promise was broken; the message names the crash and the promise.

    Example:
        >>> async def test_checkout_survives_every_crash():
        ...     await crash_sweep(Paid())
    """
    whole = Trial(scenario, limit)
    await whole.without_crash()
    crashes = 0
    for at in range(1, len(whole.trace) + 1, every):
        for when in whens:
            if when != "late" or whole.trace[at - 1] in WRITES:
                crashes += await Trial(scenario, limit).crash(at, when, whole)
    return Sweep(len(whole.trace), crashes)
