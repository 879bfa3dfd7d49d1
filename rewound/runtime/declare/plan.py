"""The plan: a reactor as data, which the engine and the owners work from."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from rewound.runtime.declare.calls import Arg, Call
from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.retry import Retry

__all__ = ["HandlerPlan", "MapPlan", "Plan", "Shape", "SourcePlan", "StepKind", "StepPlan"]

StepKind = Literal["step", "compose", "map"]

Shape = tuple[tuple[tuple[str, str, bool], ...], tuple[tuple[Any, ...], ...]]
"""What versions are compared by: the inputs (name, type, required), the steps (name, needs, result type).

A step that runs a child adds three things: its kind, what it iterates, and the child's own shape.
"""


class HandlerPlan(Struct, frozen=True):
    """An undo or compensate.

    Args:
        retry: how often to try.
        timeout: seconds per attempt.
        call: what to run.
    """

    retry: Retry
    timeout: float
    call: Call


class SourcePlan(Struct, frozen=True, eq=False):
    """The generator that feeds a map.

    Args:
        label: the generator as messages name it, such as `Billing.rows`.
        call: what to run: calling it gives an async iterator.
        item: the type of its rows, `Any` if unknown.
        decode: reads a stored row.
        loose: whether the type of rows leaves types open, so that a row is searched for losses.
        cursor: the type of its cursor.
    """

    label: str
    call: Call
    item: Any
    decode: Callable[[bytes], Any]
    loose: bool
    cursor: Any


class MapPlan(Struct, frozen=True, eq=False):
    """What a map iterates, and how.

    Args:
        child: what each element runs.
        source: what kind of thing it iterates: the list that a `step` returned, the list that an `input`
            is, the successes of another `map`, or what a `generator` yields.
        over: the name of that step, input, map or generator.
        resumable: whether the generator takes a cursor, so that it can go on after a crash (rule M4).
        concurrent: whether elements run at the same time (`fan_out`), or one after another (`map_each`).
        batch_size: the most elements in flight; 1 for `map_each`.
        atomic: whether one failing element fails the map (rule M5).
        bind: how the child's inputs are made.
        item: the type of an element, `Any` if unknown.
        undo_all: what takes all elements back in one call, if it says so (rule R12).
        generator: the generator, if it iterates one.
    """

    child: "Plan"
    source: Literal["step", "input", "map", "generator"]
    over: str
    resumable: bool
    concurrent: bool
    batch_size: int
    atomic: bool
    bind: tuple[Arg, ...]
    item: Any
    undo_all: HandlerPlan | None
    generator: SourcePlan | None = None


class StepPlan(Struct, frozen=True, eq=False):
    """One step.

    Args:
        name: the step.
        label: the step as messages name it, such as `Checkout.charge`.
        needs: the steps whose results it reads, and those of `after`, in definition order.
        retry: how often to try.
        timeout: seconds per attempt, or no limit.
        cancel_on_failure: whether a failing sibling cancels it.
        guards: what must be taken before the body starts.
        call: what to run.
        undo: how to reverse it, if it says so.
        compensate: how to clean up after its failure, if it says so.
        returns: the annotation of its result, without `Skipped`; `Any` if there is none.
        decode: reads a stored result.
        loose: whether the annotation leaves types open, so that a result is searched for losses.
        child: what it composes, if it is a composed child and has no body of its own (rule C1).
        bind: how the inputs of what it composes are made.
        map: what it iterates, if it is a map; it has no body of its own either.
        collects: the map whose results it collects, if it is a collector: it fails as part of the map,
            which its rollback takes back like any step before it (rule M7).
    """

    name: str
    label: str
    needs: tuple[str, ...]
    retry: Retry
    timeout: float | None
    cancel_on_failure: bool
    guards: tuple[Any, ...]
    call: Call
    undo: HandlerPlan | None
    compensate: HandlerPlan | None
    returns: Any
    decode: Callable[[bytes], Any]
    loose: bool
    child: "Plan | None" = None
    bind: tuple[Arg, ...] = ()
    map: MapPlan | None = None
    collects: str | None = None

    @property
    def kind(self) -> StepKind:
        """Tell what the step runs: a body of its own, a composed child, or a child for each element."""
        if self.map is not None:
            return "map"
        return "step" if self.child is None else "compose"


class Plan(Struct, frozen=True, eq=False):
    """A reactor's graph.

    Args:
        reactor: the class.
        name: its stored name.
        version: its version, from 1.
        timeout: seconds that a run may take in total, or no limit.
        guards: what a run must take before it starts.
        fingerprint: a short hash of shape and version.
        inputs: the inputs, in order.
        steps: the steps by name, in definition order.
        dependents: for each step, the steps that need it, in definition order.
        roots: the steps that need nothing, in definition order.
        returns: the step whose result is the run's, or nothing if the run has no result.
        result: the type of the run's result.
        shape: what versions are compared by.
    """

    reactor: type[Any]
    name: str
    version: int
    timeout: float | None
    guards: tuple[Any, ...]
    fingerprint: str
    inputs: tuple[FieldPlan, ...]
    steps: dict[str, StepPlan]
    dependents: dict[str, tuple[str, ...]]
    roots: tuple[str, ...]
    returns: str | None
    result: Any
    shape: Shape
