"""What a crash sweep plays."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import structs

from rewound import Failed, Reactor, Runtime
from rewound.testing.ledger import Ledger

__all__ = ["Scenario"]


class Scenario(ABC):
    """A program that a sweep runs again and again, and crashes each time at another place.

    After a crash `play` is called again, on another runtime: it is what a program does that is started
    once more. So it must say what it wants in a way that may be repeated: runs need a `key`, and a verb
    that went through before the crash is refused the second time.

    Attributes:
        reactors: what the runtimes can run.

    Example:
        >>> class Paid(Scenario):
        ...     reactors = [Checkout]
        ...
        ...     async def play(self, runtime: Runtime, ledger: Ledger) -> object:
        ...         run = await runtime.spawn(Checkout(order=17), key="17")
        ...         return await run.outcome()
    """

    reactors: ClassVar[Sequence[type[Reactor[Any]]]]

    @abstractmethod
    async def play(self, runtime: Runtime, ledger: Ledger) -> object:
        """Do what is to be tested, and return what came of it, such as a run's outcome.

        Args:
            runtime: entered; `crash_sweep` leaves it.
            ledger: what bodies wrote down so far, and the world they act on.
        """

    def state(self) -> Mapping[str, Any]:
        """Return what bodies find in `ctx.state` beside the ledger. Called for each process."""
        return {}

    def allows(self, answer: object, expected: object) -> bool:
        """Tell whether what came of it is what may come of it without a crash.

        Args:
            answer: what `play` returned after a crash.
            expected: what it returned when nothing crashed.

        Returns:
            by default, whether the two are equal. Outcomes of failed runs are compared without their
            tracebacks and attempts, and without the order of their rollback failures.
        """
        return gist(answer) == gist(expected)

    def check(self, answer: object, ledger: Ledger) -> None:  # noqa: B027 - most scenarios need no more
        """Raise `AssertionError` if anything else is wrong; also called when nothing crashed.

        Args:
            answer: what `play` returned.
            ledger: what bodies wrote down, before the crash and after it.
        """


def gist(answer: object) -> object:
    """Leave out of a failure what may differ from run to run."""
    if not isinstance(answer, Failed):
        return answer
    failures = sorted(answer.rollback_failures, key=repr)
    return structs.replace(answer, traceback="", attempts=0, others=[], rollback_failures=failures)
