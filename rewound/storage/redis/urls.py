"""Where a Redis storage is: the URLs and options that name it."""

from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from redis.asyncio import Connection
from redis.asyncio.connection import AbstractConnection, parse_url

from rewound.errors import StorageConfigError

__all__ = ["Address", "Target", "parse_target"]

Address = tuple[str, int]

PORT, SENTINEL_PORT = 6379, 26379
NOT_OURS = ("max_connections", "protocol", "socket_timeout", "health_check_interval")
"""Options of redis-py's pool and client that this backend sets, or does without."""
OURS = {"prefix": str, "patience": float, "timeout": float, "wait_replicas": int}
"""Arguments of `RedisStorage` that a URL's query may give."""


class Target(Struct, frozen=True):
    """A server, or the nodes to ask for it.

    Args:
        kind: how to find the primary.
        label: names it in messages; holds no password.
        connection: class of its connections.
        options: what that class takes.
        seeds: sentinels or cluster nodes.
        service: what the sentinels call the primary.
        sentinel_options: user name and password of the sentinels.
        ours: arguments of `RedisStorage` that the URL gives.
    """

    kind: Literal["single", "sentinel", "cluster"]
    label: str
    connection: type[AbstractConnection]
    options: dict[str, Any]
    seeds: tuple[Address, ...] = ()
    service: str = ""
    sentinel_options: dict[str, Any] = {}
    ours: dict[str, Any] = {}


def parse_target(url: str, options: dict[str, Any]) -> Target:
    """Take a URL apart; `options` win over what it says.

    Raises:
        StorageConfigError: the URL or an option cannot be used.
    """
    scheme, _, flavour = urlsplit(url).scheme.partition("+")
    if flavour:
        return _spread(url, scheme, flavour, options)
    try:
        parsed: dict[str, Any] = {**parse_url(url)}
        ours = {name: kind(parsed.pop(name)) for name, kind in OURS.items() if name in parsed}
    except ValueError as error:
        raise StorageConfigError(f"the Redis URL {_shown(url)} cannot be used: {error}") from None
    connection = parsed.pop("connection_class", Connection)
    merged = _checked(parsed | options)
    place = merged.get("path") or f"{merged.get('host', 'localhost')}:{merged.get('port', PORT)}"
    return Target("single", f"{place}/{merged.get('db', 0)}", connection, merged, ours=ours)


def _spread(url: str, scheme: str, flavour: str, options: dict[str, Any]) -> Target:
    """Read a URL with several hosts: `redis+sentinel://a:1,b:2/service/db`, `redis+cluster://a:1,b:2`."""
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    words = [word for word in parts.path.split("/") if word]
    service = words.pop(0) if flavour == "sentinel" and words else ""
    inner = f"{scheme}://{login}@host/{'/'.join(words)}?{parts.query}"
    target = parse_target(inner, options)
    seeds = tuple(_address(host, flavour) for host in hosts.split(",") if host)
    if flavour not in ("sentinel", "cluster") or not seeds or (flavour == "sentinel" and not service):
        raise StorageConfigError(
            f"the Redis URL {_shown(url)} cannot be used; write redis+sentinel://host:port,host:port/service/db"
            " or redis+cluster://host:port,host:port"
        )
    kept = {name: value for name, value in target.options.items() if name not in ("host", "port")}
    asked = {
        name.removeprefix("sentinel_"): kept.pop(name) for name in list(kept) if name.startswith("sentinel_")
    }
    if flavour == "cluster" and kept.pop("db", 0):
        raise StorageConfigError(f"the Redis URL {_shown(url)} names a database; a cluster has only one")
    kind: Literal["sentinel", "cluster"] = "sentinel" if flavour == "sentinel" else "cluster"
    label = f"{kind} {service or hosts}"
    return Target(kind, label, target.connection, kept, seeds, service, asked, target.ours)


def _address(host: str, flavour: str) -> Address:
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    usual = SENTINEL_PORT if flavour == "sentinel" else PORT
    if not name:
        name, port = port, ""
    try:
        return name.strip("[]"), int(port or usual)
    except ValueError:
        raise StorageConfigError(f"{host!r} is no host:port") from None


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    decode = options.pop("decode_responses", False)
    if decode and str(decode).lower() not in ("false", "0", "no", "n"):
        raise StorageConfigError(
            "decode_responses=True turns the stored bytes into text and breaks them; remove it from the URL "
            "or the options"
        )
    return {name: value for name, value in options.items() if name not in NOT_OURS}


def _shown(url: str) -> str:
    """Return the URL without its password."""
    head, separator, tail = url.rpartition("@")
    return f"{urlsplit(url).scheme}://...@{tail}" if separator and head else url
