"""A run in every status of the table, reached the way a run reaches it."""

from collections.abc import Callable

from tests.runtime.engine.plans import plan_for, step
from tests.runtime.engine.world import World

__all__ = ["STATUSES", "world_in"]


def _running() -> World:
    return World(plan_for("a", step("b", "a")))


def _paused() -> World:
    world = _running()
    world.state.status = "paused"  # nothing pauses a run yet
    return world


def _undo_asked() -> World:
    world = _running()
    world.ask("undo")
    return world


def _rolling_back() -> World:
    world = _running()
    world.fail("a")
    return world


def _completed() -> World:
    world = _running()
    world.succeed("a", "b")
    return world


def _halted() -> World:
    world = _running()
    world.halt("a")
    return world


def _cancelled() -> World:
    world = _running()
    world.ask("cancel")
    world.end_cut("a")
    return world


def _undone() -> World:
    world = _undo_asked()
    world.end_cut("a")
    world.hand_back()
    return world


def _undone_with_failures() -> World:
    world = _undo_asked()
    world.end_cut("a")
    world.fail_handler()
    return world


def _failed() -> World:
    world = _rolling_back()
    world.hand_back()
    return world


def _failed_with_failures() -> World:
    world = _rolling_back()
    world.fail_handler()
    return world


def parked(world: World) -> World:
    """Park a run, and return it."""
    world.park()
    return world


def _expiring() -> World:
    world = World(plan_for("a", timeout=5))
    world.tick(5)
    return world


def _cancelling() -> World:
    world = _running()
    world.ask("cancel")
    return world


STATUSES: dict[str, Callable[[], World]] = {
    "queued": lambda: World(plan_for("a"), queued=True),
    "running": _running,
    "paused": _paused,
    "undo asked": _undo_asked,
    "rolling_back": _rolling_back,
    "completed": _completed,
    "halted": _halted,
    "cancelled": _cancelled,
    "cancelled, undone": _undone,
    "cancelled, undone with failures": _undone_with_failures,
    "failed": _failed,
    "failed, with rollback failures": _failed_with_failures,
    "stuck": lambda: parked(_running()),
    "stuck while queued": lambda: parked(World(plan_for("a"), queued=True)),
    "stuck while expiring": lambda: parked(_expiring()),
    "stuck while cancelling": lambda: parked(_cancelling()),
    "stuck while undoing": lambda: parked(_undo_asked()),
    "stuck while rolling back": lambda: parked(_rolling_back()),
}


def world_in(status: str) -> World:
    """Return a run in that status."""
    return STATUSES[status]()
