"""A second opinion on journals with composed children: what the rules say of all levels together."""

from collections import defaultdict
from typing import Any

from rewound.runtime.declare import Plan
from rewound.runtime.engine import Path, refusal
from rewound.runtime.engine import messages as m
from rewound.runtime.engine import records as r
from rewound.runtime.engine.levels import plan_at
from tests.runtime.engine.player import Player
from tests.runtime.engine.strategies import Setting

__all__ = ["FamilyPlayer"]

Where = tuple[Path, str]


class FamilyReferee:
    """Follows a run with composed children.

    Args:
        player: whose run it is.
    """

    def __init__(self, player: "FamilyPlayer") -> None:
        self.player = player
        self.seen = 0
        self._begin()

    def _begin(self) -> None:
        self.completed: dict[Path, list[str]] = defaultdict(list)
        self.skipped: set[Where] = set()
        self.flight: set[Where] = set()
        self.undone: list[Where] = []
        self.failed: set[tuple[Path, str, r.HandlerKind]] = set()

    @property
    def left(self) -> set[tuple[str, str]]:
        """The rollback failures that are left."""
        return {(kind, "/".join((*path, name))) for path, name, kind in self.failed}

    def allowed(self) -> set[m.VerbName]:
        """The verbs that the engine allows; `Referee` holds them to section 3."""
        verbs: list[m.VerbName] = ["undo", "cancel", "retry"]
        return {verb for verb in verbs if refusal(self.player.world.state, verb) is None}

    def heard(self, message: m.Message) -> None:
        """Take no note."""

    def died(self) -> None:
        """Take no note."""

    def see(self, record: r.Record) -> None:
        """Check one record."""
        self.seen += 1
        path, own = (record.path, record.record) if isinstance(record, r.Within) else ((), record)
        plan = plan_at(self.player.world.plan, path)
        match own:
            case r.Started(_, name):
                assert set(plan.steps[name].needs) <= set(self.completed[path]), f"{name} starts too early"
                assert not path or (path[:-1], path[-1]) in self.flight, "a child runs and its step does not"
                self.flight.add((path, name))
            case r.Succeeded(_, name, _, skipped):
                self._leave(path, name)
                self.completed[path].append(name)
                if skipped:
                    self.skipped.add((path, name))
            case r.Failed(_, name) | r.Halted(_, name) | r.Cut(_, name):
                self.flight.discard((path, name))
            case r.RollbackOpened():
                inside = {where for where in self.flight if where[0][: len(path)] == path}
                assert not inside, "a rollback opens while something is in flight in it (S3)"
            case r.HandlerSettled(_, name, kind, error):
                self._settled((path, name), kind, failed=error is not None)
            case r.Retried():
                self._begin()
            case r.Ended(_, status):
                self._ended(path, status)
            case _:
                pass

    def _leave(self, path: Path, name: str) -> None:
        assert (path, name) in self.flight, f"{name} is not in flight"
        self.flight.discard((path, name))

    def _settled(self, where: Where, kind: r.HandlerKind, *, failed: bool) -> None:
        key = (*where, kind)
        if failed:
            self.failed.add(key)
            return
        again = key in self.failed
        self.failed.discard(key)
        if kind != "undo":
            return
        path, name = where
        composed = plan_at(self.player.world.plan, path).steps[name].child is not None
        # By hand, after everything else; of a composed child only what failed in it is repeated.
        if again or (composed and where in self.undone):
            self.undone.append(where)
            return
        assert where not in self.undone, f"{name} is undone twice (R6)"
        order = self.completed[path]
        before = [order.index(other) for level, other in self.undone if level == path]
        assert all(order.index(name) <= place for place in before), f"{name} is undone out of order (S4)"
        self.undone.append(where)

    def _ended(self, path: Path, status: str) -> None:
        assert not [where for where in self.flight if where[0][: len(path)] == path]
        if path or status != "failed":
            return
        for level, names in self.completed.items():
            plan = plan_at(self.player.world.plan, level)
            for name in names:
                owed = plan.steps[name].undo is not None and (level, name) not in self.skipped
                done = (level, name) in self.undone or (level, name, "undo") in self.failed
                assert done or not owed, f"{name} in {level} was never undone (C1)"


class FamilyPlayer(Player):
    """A player of a run with composed children."""

    def _judge(self, plan: Plan, setting: Setting) -> Any:
        return FamilyReferee(self)
