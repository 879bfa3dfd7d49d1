"""What one step of a run writes: two records (it returned, the next begins), and the head they belong to."""

import msgspec

from rewound.runtime.engine.records import Started, Succeeded, encode_record
from rewound.storage.protocol import NewRun

__all__ = ["HEAD", "RECORDS", "new_run"]

RECORDS = (
    encode_record(Succeeded(1.0, "first", msgspec.msgpack.encode({"number": 1}))),
    encode_record(Started(1.0, "second", 1)),
)


def new_run(run_id: str) -> NewRun:
    """Return a run as the runtime would create it."""
    return NewRun(
        run_id=run_id,
        reactor="FiveSteps",
        status="running",
        format=1,
        fingerprint="0123456789abcdef",
        records=RECORDS,
        commit="0123456789ab",
        nonce="0123456789ab",
    )


HEAD = msgspec.json.encode(new_run("0" * 32)).decode()
