"""Where a map's rows come from, and the inputs that its elements run on."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from rewound.runtime.context import Context, idempotency_key
from rewound.runtime.declare import ElementInputs, MapPlan, Reactor, decode_item, encode_item, open_source
from rewound.runtime.owners.maps import MapContext
from rewound.runtime.owners.readers import element_value
from rewound.runtime.owners.rows import GAP, ListRows, MapRows, Rows, SourceRows
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.spaces import SpaceWriter
from rewound.runtime.owners.values import Site, space_of

__all__ = ["RowSource"]


class RowSource:
    """The rows of one map, whatever they come from.

    Args:
        services: the node's.
        context: the map.
        plan: what it iterates.
    """

    def __init__(self, services: Services, context: MapContext, plan: MapPlan) -> None:
        self._services = services
        self._context = context
        self._plan = plan
        self._rows: Rows = ListRows([])
        self._source: SourceRows | None = None
        self._cursor: Any = None
        self._maker: ElementInputs | None = None

    @property
    def available(self) -> int:
        """How many rows can be read."""
        return self._rows.available

    @property
    def total(self) -> int | None:
        """How many rows there are, once that is known."""
        return self._rows.total

    async def open(self, *, back: bool) -> None:
        """Find the rows. Raises `SourceLost` if a generator cannot go on behind what is stored.

        Args:
            back: the map is taken back; the rows that are stored are all that is needed.
        """
        context, plan = self._context, self._plan
        match plan.source:
            case "input":
                self._rows = ListRows(list(getattr(context.instance, plan.over)))
            case "step":
                self._rows = ListRows(list(context.result_of(plan.over)))
            case "map":
                self._rows = self._other_map()
            case _:
                await self._open_source(back=back)

    def begin(self, tasks: TaskGroup, stored: Callable[..., None]) -> None:
        """Read a generator in a task of its own; `stored` is called after each page, or with its error."""
        if self._source is not None and not self._source.ended:
            tasks.start_soon(self._read, self._source, stored)

    def want(self) -> None:
        """Ask for more rows: there is room for more elements."""
        if self._source is not None:
            self._source.want()

    async def item(self, index: int) -> Any:
        """Return a row, or `GAP`."""
        return await self._rows.item(index)

    def inputs(self, item: Any) -> Reactor[Any]:
        """Make an element's inputs of its row. Raises `InputError`."""
        if self._maker is None:
            context = self._context
            step = context.level.plan.steps[context.step]
            self._maker = ElementInputs(context.level.plan, step, context.instance, context.result_of)
        made: Reactor[Any] = self._maker.make(item)
        return made

    def _other_map(self) -> Rows:
        context = self._context
        path = (*context.prefix, *context.level.path, self._plan.over)
        child = context.level.plan.steps[self._plan.over].map
        assert child is not None  # noqa: S101 - `over` names a map
        total = len(context.result_of(self._plan.over))
        storage, run_id, generation = self._services.storage, context.run_id, context.generation

        def value(index: int, records: Any) -> Any:
            site = Site(storage, run_id, (*path, str(index)), generation)
            return element_value(site, child.child, records, missing=GAP)

        return MapRows(storage, run_id, space_of(generation, path), total=total, value=value)

    async def _open_source(self, *, back: bool) -> None:
        context, generator = self._context, self._plan.generator
        assert generator is not None  # noqa: S101 - the source is a generator
        space = SpaceWriter(self._services.storage, context.claim, f"{context.space}:rows")
        step, limit = context.level.plan.steps[context.step], self._services.settings.max_payload
        encode = partial(encode_item, step, max_payload=limit)
        rows = SourceRows(space, encode=encode, decode=partial(decode_item, step))
        self._cursor = await rows.load(resumable=self._plan.resumable or back, label=generator.label)
        self._rows = self._source = rows

    async def _read(self, rows: SourceRows, stored: Callable[..., None]) -> None:
        context = self._context
        key = "/".join((*context.prefix, *context.level.path, self._plan.over))
        ctx: Context[Any] = Context(
            run_id=context.run_id,
            step=self._plan.over,
            idempotency_key=idempotency_key(context.run_id, key, context.generation, "forward"),
            state=self._services.state,
        )
        step = context.level.plan.steps[context.step]
        try:
            source = open_source(
                context.level.plan, step, context.instance, context.result_of, ctx=ctx, cursor=self._cursor
            )
            await rows.read(source, stored)
        except anyio.get_cancelled_exc_class():
            raise
        except Exception as error:  # noqa: BLE001 - user code; it fails the map
            stored(_first(error))


def _first(error: Exception) -> Exception:
    """Find what a task group has wrapped."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
