"""Is a server fit to hold runs? What it says of itself, and what that means."""

import time

from msgspec import Struct

from rewound.storage.protocol import Check

__all__ = ["Facts", "examine", "read_facts"]

OLDEST = (6, 2)
MOST_SKEW = 5.0


class Facts(Struct, frozen=True):
    """What is known of a server.

    Args:
        info: the fields of `INFO`.
        settings: of `CONFIG GET`; `None` if the server does not allow to ask.
        now: its clock.
    """

    info: dict[str, str]
    settings: dict[str, str] | None
    now: float


def read_facts(info: bytes, settings: list[bytes] | None, now: float) -> Facts:
    """Take the replies of `INFO` and `CONFIG GET` (a flat list) apart."""
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    known = {name: value for name, _, value in lines if value}
    if settings is None:
        return Facts(known, None, now)
    words = [word.decode() for word in settings]
    return Facts(known, dict(zip(words[::2], words[1::2], strict=True)), now)


def examine(facts: Facts, local: float | None = None) -> list[Check]:
    """Return a finding on everything that matters.

    Args:
        facts: of the server.
        local: this machine's clock; by default read now.
    """
    here = time.time() if local is None else local
    return [_version(facts), _role(facts), _memory(facts), _persistence(facts), _clock(facts, here)]


def _version(facts: Facts) -> Check:
    name = "Valkey" if "valkey_version" in facts.info else "Redis"
    text = facts.info.get("redis_version", "0")
    numbers = tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        return Check("version", "fail", f"{name} {text} is too old; use Redis 6.2 or newer, or Valkey")
    return Check("version", "ok", f"{name} {facts.info.get('valkey_version', text)}")


def _role(facts: Facts) -> Check:
    role = facts.info.get("role", "master")
    if role != "master":
        return Check("role", "fail", "the server is a read-only replica; use the URL of its primary")
    return Check("role", "ok", "the server is a primary")


def _memory(facts: Facts) -> Check:
    """Any eviction can take a lease, whose early end lets two nodes work on one run."""
    policy = facts.info.get("maxmemory_policy", "")
    if policy == "noeviction":
        return Check("memory", "ok", "maxmemory-policy is noeviction")
    if not policy:
        return Check("memory", "warn", "maxmemory-policy could not be read; make sure that it is noeviction")
    return Check(
        "memory",
        "fail",
        f"maxmemory-policy is {policy}, so the server may evict runs or leases; "
        "set maxmemory-policy to noeviction",
    )


def _persistence(facts: Facts) -> Check:
    if facts.info.get("aof_enabled") == "1":
        return _appending(None if facts.settings is None else facts.settings.get("appendfsync"))
    if facts.settings is None:
        return _risk("there is no append-only file, and whether snapshots are made could not be read")
    if facts.settings.get("save"):
        return _risk("there are only snapshots: a restart loses all writes since the last one")
    return _risk("there is no persistence: a restart loses every run, live ones included")


def _appending(fsync: str | None) -> Check:
    if fsync == "always":
        return Check("persistence", "ok", "every write is on disk before it is answered (appendfsync always)")
    if fsync == "everysec":
        return Check("persistence", "ok", "an append-only file; a crash of the machine loses up to a second")
    if fsync is None:
        return _risk("there is an append-only file, but appendfsync could not be read")
    return _risk(f"appendfsync is {fsync}: a crash of the machine loses up to half a minute of writes")


def _risk(message: str) -> Check:
    return Check("persistence", "warn", f"{message}; set appendonly yes and appendfsync everysec or always")


def _clock(facts: Facts, here: float) -> Check:
    skew = facts.now - here
    if abs(skew) > MOST_SKEW:
        return Check(
            "clock",
            "warn",
            f"the server's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's: "
            "runs are not harmed, but times in lists and alarms follow the server",
        )
    return Check("clock", "ok", "the server's clock agrees with this machine's")
