"""Records in a few words, so that a test can list what it expects."""

from collections.abc import Iterable

from rewound.runtime.engine import records as r

__all__ = ["told"]


def told(records: Iterable[r.Record]) -> list[str]:
    """Tell each record: `started a 1`, `failed a`, `undone a`, `ended failed`..."""
    return [_tell(record) for record in records]


def _tell(record: r.Record) -> str:
    if isinstance(record, r.Within):
        return f"{'/'.join(record.path)}: {_tell(record.record)}"
    words = [type(record).__name__.lower()]
    match record:
        case r.Started(_, name, attempt):
            words += [name, str(attempt)]
        case r.Succeeded(_, name, _, skipped):
            words = ["skipped" if skipped else "succeeded", name]
        case r.Failed(_, name, _, _, float(retry_at)):
            words = ["retrying", name, "at", f"{retry_at:g}"]
        case r.HandlerFailed(_, name, kind, _, retry_at):
            words = [kind, name, "again at", f"{retry_at:g}"]
        case r.HandlerSettled(_, name, kind, None):
            words = ["undone" if kind == "undo" else "compensated", name]
        case r.HandlerSettled(_, name, kind, _):
            words = [kind, name, "failed"]
        case r.Asked(_, detail) | r.Ended(_, detail):
            words += [detail]
        case r.Failed(_, name) | r.Halted(_, name) | r.Cut(_, name):
            words += [name]
        case _:
            pass
    return " ".join(words)
