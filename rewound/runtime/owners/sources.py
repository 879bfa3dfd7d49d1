"""Where a map's rows come from, and the inputs that its elements run on."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from anyio.abc import TaskGroup

from rewound.errors import RewoundError, SourceLost, StorageError
from rewound.runtime.context import Context, idempotency_key
from rewound.runtime.declare import (
    ONCE,
    ElementInputs,
    Reactor,
    decode_item,
    encode_item,
    list_items,
    open_source,
)
from rewound.runtime.declare.codec import encode
from rewound.runtime.engine.messages import Result
from rewound.runtime.owners.attempt import failure_of
from rewound.runtime.owners.maps import MapContext
from rewound.runtime.owners.readers import element_value
from rewound.runtime.owners.rows import GAP, ListRows, LostRows, MapRows, Rows
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.source_rows import SourceRows
from rewound.runtime.owners.spaces import SpaceWriter
from rewound.runtime.owners.values import Site, space_of

__all__ = ["RowSource"]


class RowSource:
    """The rows of one map, whatever they come from.

    Args:
        services: the node's.
        context: the map.
    """

    def __init__(self, services: Services, context: MapContext) -> None:
        self._services = services
        self._context = context
        self._plan = context.plan
        self._step = context.level.plan.steps[context.step]
        self._rows: Rows = ListRows(())
        self._source: SourceRows | None = None
        self._maker: ElementInputs | None = None

    @property
    def available(self) -> int:
        """How many rows can be read."""
        return self._rows.available

    @property
    def total(self) -> int | None:
        """How many rows there are, once that is known."""
        return self._rows.total

    async def open(self) -> RewoundError | None:
        """Find the rows and what elements have in common; return why no element can begin, if so."""
        try:
            self._rows = await self._found()
            return self._lost()
        except StorageError:
            raise
        except RewoundError as error:
            self._rows = LostRows(error)
            return error

    def check(self) -> RewoundError | None:
        """Resolve what all elements share; return what is wrong with it (S2)."""
        try:
            self._made()
        except RewoundError as error:
            return error
        return None

    def begin(self, tasks: TaskGroup, stored: Callable[[Result | None], object]) -> None:
        """Read a generator in a task of its own; `stored` is called after each page, and at its end."""
        if self._source is not None and not self._source.ended:
            tasks.start_soon(self._read, self._source, stored)

    def want(self) -> None:
        """Ask for more rows: there is room for more elements."""
        if self._source is not None:
            self._source.want()

    async def inputs(self, index: int) -> Reactor[Any] | None:
        """Make an element's inputs of its row; `None` if that is a gap.

        Raises:
            InputError: they do not fit.
            PayloadError: the row cannot be read.
        """
        item = await self._rows.item(index)
        if item is GAP:
            return None
        made: Reactor[Any] = self._made().make(item)
        return made

    def _made(self) -> ElementInputs:
        if self._maker is None:
            context = self._context
            self._maker = ElementInputs(context.level.plan, self._step, context.instance, context.result_of)
        return self._maker

    async def _found(self) -> Rows:
        context = self._context
        match self._plan.source:
            case "generator":
                return await self._generator()
            case "map":
                return self._other_map()
            case _:
                return ListRows(
                    list_items(context.level.plan, self._step, context.instance, context.result_of)
                )

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

    async def _generator(self) -> SourceRows:
        context, services, label = self._context, self._services, self._label
        self._source = SourceRows(
            SpaceWriter(services.storage, context.claim, f"{context.space}:rows"),
            encode=partial(encode_item, self._step, max_payload=services.settings.max_payload),
            encode_cursor=lambda cursor: encode(cursor, f"{label}: cursor"),
            decode=partial(decode_item, self._step),
            failure=self._failure,
        )
        await self._source.load()
        return self._source

    def _lost(self) -> SourceLost | None:
        """Tell if rows are stored, there are more, and the generator cannot go on behind them (M4)."""
        source = self._source
        if source is None or source.ended or not source.available or self._plan.resumable:
            return None
        return SourceLost(
            f"{self._label} was cut off after {source.available} rows and cannot be read again from there; "
            "let it take a cursor and yield Page(items, cursor)"
        )

    async def _read(self, rows: SourceRows, stored: Callable[[Result | None], object]) -> None:
        try:
            source = self._opened(rows.cursor)
        except RewoundError as error:
            stored(self._failure(error))
            return
        stored(await rows.read(source, lambda: stored(None)))

    def _opened(self, cursor: Any) -> AsyncIterator[Any]:
        context, over = self._context, self._plan.over
        key = "/".join((*context.prefix, *context.level.path, over))
        ctx: Context[Any] = Context(
            run_id=context.run_id,
            step=over,
            idempotency_key=idempotency_key(context.run_id, key, context.generation, "forward"),
            state=self._services.state,
        )
        level = context.level
        return open_source(
            level.plan, self._step, context.instance, context.result_of, ctx=ctx, cursor=cursor
        )

    @property
    def _label(self) -> str:
        generator = self._plan.generator
        assert generator is not None  # noqa: S101 - the source is a generator
        return generator.label

    def _failure(self, error: BaseException) -> Result:
        return failure_of(error, step=self._context.step, attempt=1, retry=ONCE)
