"""One process of a sweep: enters a runtime, plays the scenario, leaves; or dies on the way."""

from typing import Any

import anyio

from rewound import Runtime
from rewound.actors import VirtualClock
from rewound.testing.ledger import Ledger
from rewound.testing.link import Link
from rewound.testing.scenario import Scenario

__all__ = ["LEASE", "Life"]

LEASE = 10.0
"""Seconds of the virtual clock."""


class Life:
    """A process.

    Args:
        scenario: what it plays.
        clock: its clock.
        ledger: where its bodies write down what they do.
        link: its way to the storage.

    Attributes:
        answer: what `play` returned.
        played: it has returned.
        died: when the process died; `None` if it came to its end.
    """

    def __init__(self, scenario: Scenario, clock: VirtualClock, ledger: Ledger, link: Link) -> None:
        self.answer: object = None
        self.played = False
        self.died: float | None = None
        self._scenario = scenario
        self._clock = clock
        self._ledger = ledger
        self._link = link
        self._runtime = Runtime(
            link,
            reactors=scenario.reactors,
            state={**scenario.state(), "ledger": ledger},
            lease=LEASE,
            grace=0,
            clock=clock,
        )

    async def live(self, limit: float) -> None:
        """Play the scenario, letting time pass whenever nothing else happens; die if the link is cut.

        Args:
            limit: seconds of the virtual clock after which it is ended as if by a crash.
        """
        self._ledger.life += 1
        end = self._clock.now() + limit
        try:
            async with anyio.create_task_group() as tasks:
                playing = anyio.CancelScope()
                tasks.start_soon(self._die, playing, tasks.cancel_scope)
                tasks.start_soon(self._play, playing, tasks.cancel_scope)
                while self._clock.now() < end:
                    await self._clock.advance(1)
                tasks.cancel_scope.cancel()
        finally:
            await self._kill()

    async def _play(self, playing: anyio.CancelScope, all_of_it: anyio.CancelScope) -> None:
        with playing:
            # not `async with`: a process that dies does not leave its runtime
            runtime = await self._runtime.__aenter__()
            self.answer = await self._scenario.play(runtime, self._ledger)
            self.played = True
            await self._clock.sleep(1)  # what has ended is let go of a moment later
            await runtime.close()
            all_of_it.cancel()

    async def _die(self, playing: anyio.CancelScope, all_of_it: anyio.CancelScope) -> None:
        await self._link.crashed.wait()
        self.died = self._clock.now()
        playing.cancel()
        await self._kill()  # at this very moment: it may be closing, which is shielded
        all_of_it.cancel()

    async def _kill(self) -> None:
        """End the runtime as SIGKILL ends a process: it lets nothing go and takes no leave."""
        internals: Any = self._runtime
        host, internals._host, internals._node = internals._host, None, None  # noqa: SLF001 - nobody else may
        if host is not None:
            host.cancel()
            self._link.bury()
            with anyio.CancelScope(shield=True):
                await host._ended.wait()  # noqa: SLF001
