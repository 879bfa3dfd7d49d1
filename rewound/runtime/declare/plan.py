"""The plan: a reactor as data, which the engine and the owners work from."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from rewound.runtime.declare.calls import Arg, Call
from rewound.runtime.declare.declared import FieldPlan
from rewound.runtime.declare.retry import Retry

__all__ = ["HandlerPlan", "Plan", "Shape", "StepPlan"]

Shape = tuple[tuple[tuple[str, str, bool], ...], tuple[tuple[str, tuple[str, ...], str], ...]]
"""What versions are compared by: the inputs (name, type, required), the steps (name, needs, result type)."""


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
        bind: how the child's inputs are made.
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
