"""The supervisor: starts actors, finds them, stops them in order, decides what a crash means."""

import contextvars
import logging
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio.abc import TaskGroup

from rewound.actors.actor import Actor
from rewound.actors.address import Address
from rewound.actors.clock import Clock, SystemClock
from rewound.actors.crashes import RestartPolicy
from rewound.actors.life import Life
from rewound.actors.mailbox import Mailbox
from rewound.actors.ref import Ref
from rewound.errors import ActorError

logger = logging.getLogger("rewound.actors")

M = TypeVar("M")


class Supervisor:
    """Owns a task group of actors. A crash in one touches neither the others nor the program around.

    Leaving the block stops all actors in order; leaving it with an exception cancels them.

    Args:
        clock: for back-off and the deadlines of asks; default the machine's. Its alarms are served here.
        restarts: the most restarts of one actor within the window. Default 3.
        window: seconds. Default 60.
        backoff: the pause in seconds before the first restart; it doubles with each further one in the
            window. Default 0.1.
        on_give_up: called with key and exception when a crash has ended an actor: it has no factory, or
            was restarted too often. The key is free again by then. Must not block; what it raises is
            logged.
        on_end: called with the key whenever an actor has ended for good, for whatever reason, before
            `on_give_up`; the key is free again. Must not block; what it raises is logged.

    Example:
        >>> async with Supervisor() as supervisor:
        ...     counter = supervisor.start(Counter())
        ...     await counter.ask(5)
        5
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        restarts: int = 3,
        window: float = 60.0,
        backoff: float = 0.1,
        on_give_up: Callable[[Hashable, Exception], object] | None = None,
        on_end: Callable[[Hashable], object] | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._policy = RestartPolicy(restarts, window, backoff)
        self._on_give_up = on_give_up
        self._on_end = on_end
        self._lives: dict[Hashable, Life] = {}
        self._tasks: TaskGroup | None = None
        self._block: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> Self:
        if self._block is not None:
            raise ActorError("this supervisor was entered before; make a new one")
        self._block = self._running()
        await self._block.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._block is None:
            raise ActorError("this supervisor was not entered")
        return await self._block.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._clock.run_alarms)
            try:
                yield
                self._tasks = None
                await self.stop_all()
            except Exception as error:  # noqa: BLE001 - raised below, unwrapped: the group would wrap it
                failure = error
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def start(
        self,
        actor: Actor[M],
        *,
        factory: Callable[[], Actor[M]] | None = None,
        context: contextvars.Context | None = None,
    ) -> Ref[M]:
        """Start an actor in a task of its own; return at once.

        Args:
            actor: an actor object that was not started before.
            factory: makes the next actor after a crash. The key, the unread mail and every `Ref` stay.
                Without it a crash ends the actor.
            context: the context variables that the actor, and tasks it starts, shall see. Default: a
                copy of the caller's.

        Returns:
            the handle on the actor.

        Raises:
            ActorError: the key is in use, the actor has none, or was started before; or the supervisor
                is not running.
        """
        tasks = self._tasks
        if tasks is None:
            raise ActorError(f"the supervisor of {actor!r} is not running: start actors inside its block")
        key = self._free_key(actor)
        ref: Ref[M] = Ref(Address(key, Mailbox(actor.mailbox_capacity, owner=key), self._clock))
        actor.attach(ref)
        self._lives[key] = life = Life(actor, ref, self._policy, factory)
        if context is None:
            tasks.start_soon(self._run, life, name=f"actor {key}")
        else:
            context.run(tasks.start_soon, partial(self._run, life), name=f"actor {key}")
        return ref

    def find(self, key: Hashable) -> Ref[Any] | None:
        """Return the handle on the actor with this key, or None if there is none."""
        life = self._lives.get(key)
        return None if life is None else life.ref

    async def stop(self, key: Hashable) -> None:
        """Stop an actor in order and wait for its end: it finishes its batch, then `stopped` runs.

        An unknown key is no error: the actor may just have ended by itself.

        Raises:
            ActorError: an actor stops itself so; it should call `self.stop()`.
        """
        life = self._lives.get(key)
        if life is not None:
            life.address.check_other()
            life.stop()
            await life.address.ended()

    async def stop_all(self, order: Iterable[Hashable] | None = None) -> None:
        """Stop all actors in order, one after the other, waiting for each.

        Args:
            order: the keys to stop first. The rest follows, the last started first: so an actor may use
                those that were started before it until its own end.
        """
        for key in order or ():
            await self.stop(key)
        while self._lives:
            for key in reversed(list(self._lives)):
                await self.stop(key)

    def kill(self, key: Hashable) -> None:
        """Cancel an actor at once; `stopped` does not run. Unknown keys are ignored."""
        life = self._lives.get(key)
        if life is not None:
            life.kill()

    def _free_key(self, actor: Actor[Any]) -> Hashable:
        key: Hashable = getattr(actor, "key", None)
        if key is None:
            raise ActorError(f"{type(actor).__name__} has no key; set `key` on the class or in __init__")
        if key in self._lives:
            raise ActorError(f"an actor with key {key!r} is alive; stop it and wait for its end first")
        return key

    async def _run(self, life: Life) -> None:
        crash = None
        key = life.address.key
        try:
            crash = await life.run()
        finally:
            life.address.leave(crash)
            del self._lives[key]
            self._report("on_end", self._on_end, key)
        if crash is not None:
            logger.error("actor %r crashed and is not restarted", key, exc_info=crash)
            self._report("on_give_up", self._on_give_up, key, crash)

    def _report(self, name: str, callback: Callable[..., object] | None, *arguments: Any) -> None:
        if callback is None:
            return
        try:
            callback(*arguments)
        except Exception:
            logger.exception("%s%r raised", name, arguments)
