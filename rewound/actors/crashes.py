"""What counts as a crash, and when a crashed actor is restarted. Pure."""

from dataclasses import dataclass
from typing import NamedTuple, cast

from rewound.errors import ActorError


class Sifted(NamedTuple):
    """An exception, parted into what the supervisor deals with and what it must let through."""

    crash: Exception | None
    through: BaseException | None


def sift(error: BaseException, cancelled: type[BaseException], *, requested: bool) -> Sifted:
    """Part an exception that left an actor.

    Args:
        error: what was raised; a group is parted into its members.
        cancelled: the event loop's class for cancellation.
        requested: whether somebody did cancel the actor. If not, a cancellation is a crash: user code
            raised it, for instance by awaiting a future that was cancelled.
    """
    if isinstance(error, Exception):
        return Sifted(error, None)
    if isinstance(error, BaseExceptionGroup):
        return _sift_group(cast("BaseExceptionGroup[BaseException]", error), cancelled, requested=requested)
    if isinstance(error, cancelled) and not requested:
        return Sifted(_stray(error), None)
    return Sifted(None, error)


def _sift_group(
    group: BaseExceptionGroup[BaseException], cancelled: type[BaseException], *, requested: bool
) -> Sifted:
    crashes, through = group.split(Exception)
    if through is not None and not requested:
        strays, through = through.split(cancelled)
        if strays is not None and crashes is None:
            return Sifted(_stray(strays), through)
    return Sifted(crashes, through)


def _stray(error: BaseException) -> ActorError:
    crash = ActorError(
        f"{type(error).__name__} was raised, but no cancel scope around this task was cancelled"
    )
    crash.__cause__ = error
    return crash


@dataclass(frozen=True)
class RestartPolicy:
    """How often, and after what pause, a crashed actor is restarted.

    Args:
        most: the most restarts within the window.
        window: its length in seconds.
        backoff: the pause in seconds before the first; it doubles with each further one.
    """

    most: int
    window: float
    backoff: float

    def pause(self, restarts: list[float], now: float) -> float | None:
        """Return the seconds to wait before a restart, and note it; None means give up.

        Args:
            restarts: when the earlier ones were; kept up to date here.
            now: the time of the crash.
        """
        restarts[:] = [at for at in restarts if at > now - self.window]
        if len(restarts) >= self.most:
            return None
        restarts.append(now)
        return self.backoff * 2.0 ** (len(restarts) - 1)
