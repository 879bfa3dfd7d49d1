"""Entering and leaving a runtime, by itself or with a web framework."""

import warnings
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio

from rewound.actors import Clock, HostTask, SystemClock
from rewound.errors import RuntimeClosed
from rewound.runtime.catalogue import Catalogue
from rewound.runtime.node.node import Node, OpenState
from rewound.runtime.owners.services import Services
from rewound.runtime.settings import Settings
from rewound.storage import open_storage
from rewound.storage.protocol import Storage

__all__ = ["Lifetime"]


class Lifetime:
    """The part of a `Runtime` that has it running.

    Args:
        storage: a URL, or a storage object.
        settings: limits and times.
        catalogue: what can be run.
        open_state: opens what bodies see as `ctx.state`.
        clock: default: the machine's.
    """

    def __init__(
        self,
        storage: str | Storage,
        settings: Settings,
        catalogue: Catalogue,
        open_state: OpenState,
        clock: Clock | None,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._catalogue = catalogue
        self._open_state = open_state
        self._clock = clock
        self._host: HostTask | None = None
        self._node: Node | None = None

    async def __aenter__(self) -> Self:
        """Open storage, join, start taking work. Raises `DefinitionError` or `StorageError`."""
        if self._host is not None:
            raise RuntimeClosed("this runtime is entered already; make another one for another block")
        self._catalogue.open()
        storage = open_storage(self._storage) if isinstance(self._storage, str) else self._storage
        # Clocks wait on events of one event loop; a runtime may be entered again on another.
        services = Services(storage, self._clock or SystemClock(), self._settings)
        node = Node(services, self._catalogue.plans, self._open_state)
        self._host = host = HostTask()
        try:
            await host.start(node.serve)
        except BaseException:
            self._host = None
            raise
        self._node = node
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take no more work, let bodies finish within `grace`, cancel the rest, give every run up."""
        await self.close()

    async def close(self) -> None:
        """Leave the runtime, as the end of its `async with` block does. Idempotent.

        Raises:
            Exception: what made the runtime crash meanwhile.
        """
        host, node = self._host, self._node
        if host is None or node is None:
            return
        node.close()
        with anyio.CancelScope(shield=True):
            await node.finished.wait()
            self._host = self._node = None
            if not node.leftovers:
                await host.stop()

    def __del__(self) -> None:
        """Warn if the runtime was entered and never left."""
        if getattr(self, "_host", None) is not None:
            warnings.warn(
                f"{self!r} was not closed; use `async with`", ResourceWarning, source=self, stacklevel=2
            )

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[dict[str, Any]]:  # noqa: ARG002 - the protocol of ASGI frameworks
        """Run the runtime with a Starlette or FastAPI application; `request.state.rewound` is the runtime.

        Example:
            >>> app = FastAPI(lifespan=runtime.lifespan)
        """
        async with self:
            yield {"rewound": self}

    async def cleanup_ctx(self, app: object) -> AsyncIterator[None]:  # noqa: ARG002 - the protocol of aiohttp
        """Run the runtime with an aiohttp application.

        Example:
            >>> app.cleanup_ctx.append(runtime.cleanup_ctx)
        """
        async with self:
            yield

    def _running(self) -> Node:
        if self._node is None:
            raise RuntimeClosed("the runtime is not running: use it inside `async with runtime`")
        if self._node.services.closing:
            raise RuntimeClosed("the runtime is closing, or has crashed; it takes no more work")
        return self._node
