"""The life of one actor in its task: start, read mail, crash, restart, end."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio

from rewound.actors.actor import Actor
from rewound.actors.crashes import RestartPolicy, sift
from rewound.actors.host import cancel_requested, scope_cancelled
from rewound.actors.letter import Letter
from rewound.actors.ref import Ref

logger = logging.getLogger("rewound.actors")


class Life:
    """Runs an actor, and fresh ones after it when it crashes.

    Args:
        actor: the first one.
        ref: the handle that they share.
        policy: when to restart.
        factory: makes the next actor; without it a crash is the end.
    """

    __slots__ = ("_factory", "_first", "_pause", "_policy", "_restarts", "address", "ref", "scope")

    def __init__(
        self,
        actor: Actor[Any],
        ref: Ref[Any],
        policy: RestartPolicy,
        factory: Callable[[], Actor[Any]] | None,
    ) -> None:
        self.ref = ref
        self.address = ref.address
        self.scope = anyio.CancelScope()
        self._first = actor
        self._policy = policy
        self._factory = factory
        self._restarts: list[float] = []
        self._pause: anyio.CancelScope | None = None

    def stop(self) -> None:
        """Ask for an ordered end: after the current batch, or at once if a restart is due."""
        self.address.close()
        if self._pause is not None:
            self._pause.cancel()

    def kill(self) -> None:
        """End the actor by cancelling it."""
        self.address.close()
        self.scope.cancel()

    async def run(self) -> Exception | None:
        """Live until the end.

        1. Run the actor until it is stopped, killed or crashes.
        2. After a crash: fail the asks it had taken, keep the mail it had not.
        3. Restart if the factory and the policy allow it, after the policy's pause; else end.

        Returns:
            the crash that ended it, if one did.
        """
        self.address.enter()
        if self.scope.cancel_called:
            return None
        try:
            with self.scope:
                return await self._lives()
        except BaseException as error:  # noqa: BLE001 - sifted: what is no crash is raised again
            # `Task.cancel` on this task alone ends this actor alone; a task group would take it for its
            # own end and cancel the siblings.
            return self._sift(error, requested=scope_cancelled())
        return None

    async def _lives(self) -> Exception | None:
        crash = await self._live(lambda: self._first)
        while crash is not None and self._factory is not None and await self._may_restart(crash):
            crash = await self._live(partial(self._fresh, self._factory))
        return crash

    async def _live(self, make: Callable[[], Actor[Any]]) -> Exception | None:
        try:
            actor = make()
            await actor.run(partial(self._serve, actor))
        except BaseException as error:  # noqa: BLE001 - as above
            return self._sift(error, requested=cancel_requested())
        return None

    async def _serve(self, actor: Actor[Any]) -> None:
        address = self.address
        await actor.started()
        if address.unread and not address.mailbox.closed:
            await actor.handle(address.take_unread())
        while letters := await address.mailbox.drain():
            await actor.handle(letters)
        await actor.stopped()

    def _fresh(self, factory: Callable[[], Actor[Any]]) -> Actor[Any]:
        actor = factory()
        actor.attach(self.ref)
        return actor

    def _sift(self, error: BaseException, *, requested: bool) -> Exception | None:
        """Return the crash in an exception; raise what is none."""
        crash, through = sift(error, anyio.get_cancelled_exc_class(), requested=requested)
        if through is None:
            return crash
        if crash is not None:
            logger.error("actor %r raised while it was cancelled", self.address.key, exc_info=crash)
        raise through from None

    def _abandon(self, crash: Exception) -> None:
        # What the crashed actor had taken is lost with it; the other mail waits for the next actor.
        letters: list[Letter[Any]] = [*self.address.unread, *self.address.mailbox]
        kept = {letter.question for letter in letters if letter.question is not None}
        self.address.abandon(crash, kept)

    async def _may_restart(self, crash: Exception) -> bool:
        """Wait until the actor may be restarted; return False if it may not."""
        address = self.address
        self._abandon(crash)
        pause = self._policy.pause(self._restarts, address.clock.now())
        if pause is None or address.mailbox.closed:
            return False
        logger.error("actor %r crashed; it is restarted in %g s", address.key, pause, exc_info=crash)
        self._pause = anyio.CancelScope()
        with self._pause:
            await address.clock.sleep(pause)
        self._pause = None
        return not address.mailbox.closed
