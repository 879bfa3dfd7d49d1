"""Redis URLs: what they name, what is refused, and that no password shows."""

from typing import Any

import pytest
from redis.asyncio import Connection, SSLConnection
from redis.asyncio.connection import UnixDomainSocketConnection

from rewound.errors import StorageConfigError
from rewound.storage.redis import RedisStorage
from rewound.storage.redis.dialing import check_options
from rewound.storage.redis.urls import parse_target


@pytest.mark.parametrize(
    ("url", "connection", "options"),
    [
        ("redis://", Connection, {}),
        ("redis://h:1234/3", Connection, {"host": "h", "port": 1234, "db": 3}),
        ("redis://u:p%40x@h", Connection, {"host": "h", "username": "u", "password": "p@x"}),
        ("rediss://h", SSLConnection, {"host": "h"}),
        ("unix:///run/r.sock?db=2", UnixDomainSocketConnection, {"path": "/run/r.sock", "db": 2}),
        ("redis://h?max_connections=5&socket_timeout=1", Connection, {"host": "h"}),
        ("redis://h?decode_responses=false", Connection, {"host": "h"}),
    ],
)
def test_url_names_a_server(url: str, connection: type, options: dict[str, Any]) -> None:
    """Scheme, login, host, port and database; options of pools and clients are left out."""
    target = parse_target(url, {})
    assert (target.kind, target.connection, target.options) == ("single", connection, options)


def test_options_win_over_the_url() -> None:
    """What the caller passes is what counts."""
    assert parse_target("redis://:a@h", {"password": "b"}).options == {"host": "h", "password": "b"}


def test_sentinel_url_names_sentinels_service_and_database() -> None:
    """Several hosts, the usual port for those without one, and the sentinels' own password."""
    target = parse_target("redis+sentinel://:pw@a:1,b,[::1]:2/shop/3?sentinel_password=other", {})
    assert target.seeds == (("a", 1), ("b", 26_379), ("::1", 2))
    assert (target.kind, target.service) == ("sentinel", "shop")
    assert target.options == {"password": "pw", "db": 3}
    assert target.sentinel_options == {"password": "other"}


def test_cluster_url_names_nodes() -> None:
    """Several hosts, TLS or not."""
    target = parse_target("rediss+cluster://u:pw@a:1,[::1]", {})
    assert target.seeds == (("a", 1), ("::1", 6_379))
    assert (target.kind, target.connection) == ("cluster", SSLConnection)
    assert target.options == {"username": "u", "password": "pw"}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://h", "cannot be used"),
        ("redis://h:port", "cannot be used"),
        ("redis://h?patience=long", "cannot be used: could not convert"),
        ("redis://h?decode_responses=True", "decode_responses=True .* remove it"),
        ("redis+sentinel://h", "write redis\\+sentinel://host:port"),
        ("redis+sentinel:///shop", "write redis\\+sentinel://host:port"),
        ("redis+magic://h", "write redis\\+sentinel://host:port"),
        ("redis+cluster://h/2", "a cluster has only one"),
        ("redis+cluster://h:port", "'h:port' is no host:port"),
    ],
)
def test_url_that_cannot_be_used_is_refused(url: str, message: str) -> None:
    """The message shows the URL and what is wrong with it."""
    with pytest.raises(StorageConfigError, match=message):
        parse_target(url, {})


def test_client_that_decodes_is_refused() -> None:
    """Bytes must stay bytes."""
    with pytest.raises(StorageConfigError, match="decode_responses"):
        RedisStorage("redis://h", decode_responses=True)


def test_no_message_shows_the_password() -> None:
    """Neither errors nor names hold secrets."""
    with pytest.raises(StorageConfigError) as caught:
        parse_target("http://user:secret@h", {})
    shown = f"{caught.value} {RedisStorage('redis://user:secret@h', password='secret')!r}"  # noqa: S106
    assert "secret" not in shown
    assert "h:6379/0" in shown


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
def test_url_may_give_our_own_options(scheme: str) -> None:
    """What is configured by a URL alone can still choose its prefix."""
    target = parse_target(f"{scheme}://h?prefix=shop&patience=2.5&wait_replicas=1", {})
    assert target.ours == {"prefix": "shop", "patience": 2.5, "wait_replicas": 1}
    assert "prefix='shop'" in repr(RedisStorage(f"{scheme}://h?prefix=shop", prefix="other"))


def test_unknown_option_is_refused() -> None:
    """A misspelt option is named before anything is connected."""
    with pytest.raises(StorageConfigError, match="'pasword'"):
        check_options(parse_target("redis://h", {"pasword": "x"}))


@pytest.mark.parametrize("prefix", ["", "a{b", "a*"])
def test_prefix_that_would_change_the_slots_is_refused(prefix: str) -> None:
    """Braces in a prefix would put a run's keys elsewhere."""
    with pytest.raises(StorageConfigError, match="use a plain name"):
        RedisStorage("redis://h", prefix=prefix)
