"""The pure parts of the Redis backend: keys, entries, error remedies, findings, scripts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from rewound.storage.redis.checks import Facts, examine, read_facts
from rewound.storage.redis.failures import DISCONNECTED, Remedy, remedy_for
from rewound.storage.redis.keys import Keys, entry_name, split_entry
from rewound.storage.redis.scripts import LUA, NAMES, Script, pack

KEYS = Keys("p")


@given(st.text())
def test_keys_of_a_run_share_a_slot_and_name_it(run_id: str) -> None:
    """Whatever an id holds, its keys share a slot, no other id's, and the id can be read back."""
    run = KEYS.run(run_id)
    assert len({key_slot(key) for key in (*run.all(), run.reply("m"))}) == 1
    assert KEYS.run_of(run.head) == run_id


@given(st.text(), st.text())
def test_different_runs_have_different_keys(one: str, other: str) -> None:
    """Escaping braces mixes up no two ids."""
    assert (KEYS.run(one).head == KEYS.run(other).head) == (one == other)


def test_keys_of_the_index_share_a_slot() -> None:
    """One script may write all of them."""
    keys = [
        KEYS.every,
        KEYS.wake,
        KEYS.status("s"),
        KEYS.reactor("r"),
        KEYS.owner("n"),
        KEYS.lease("n"),
        KEYS.sent("m"),
    ]
    assert len({key_slot(key) for key in keys}) == 1


@given(st.lists(st.text(), min_size=1))
def test_entry_names_can_be_taken_apart(parts: list[str]) -> None:
    """Whatever ids hold, marked as suspect or not."""
    name = entry_name(*parts)
    assert split_entry(name) == split_entry(name + "~") == parts


def test_commands_are_packed_as_redis_reads_them() -> None:
    """Text is sent as UTF-8, bytes as they are."""
    assert pack((b"SET", "ä", b"\r\n")) == b"*3\r\n$3\r\nSET\r\n$2\r\n\xc3\xa4\r\n$2\r\n\r\n\r\n"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (NoScriptError("No matching script"), Remedy.TEACH),
        (ReadOnlyError("You can't write against a read only replica."), Remedy.RECONNECT),
        (MasterDownError("Link with MASTER is down"), Remedy.RECONNECT),
        (ClusterDownError("Hash slot not served"), Remedy.WAIT),
        (TryAgainError("Multiple keys request during rehashing of slot"), Remedy.WAIT),
        (AskError("1 h:1"), Remedy.WAIT),
        (OutOfMemoryError("command not allowed"), Remedy.WAIT),
        (ResponseError("BUSY Redis is busy running a script."), Remedy.WAIT),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots"), Remedy.WAIT),
        (ResponseError("NOREPLICAS Not enough good replicas to write."), Remedy.WAIT),
        (
            ResponseError("Error running script (call to f_1): @user_script:9: -READONLY You can't"),
            Remedy.RECONNECT,
        ),
        (ResponseError("Error running script (call to f_1): @user_script:9: -OOM command not"), Remedy.WAIT),
        (ResponseError("wrong number of arguments"), Remedy.REFUSE),
        (ResponseError("WRONGTYPE Operation against a key"), Remedy.REFUSE),
    ],
)
def test_every_error_has_a_remedy(error: Exception, remedy: Remedy) -> None:
    """What passes is repeated, what is final is not."""
    assert remedy_for(error) is remedy


def test_loading_server_is_as_good_as_none() -> None:
    """The connection is given up and made again later."""
    assert isinstance(BusyLoadingError("Redis is loading the dataset in memory"), DISCONNECTED)


INFO = (
    b"# Server\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\r\n"
)
GOOD = read_facts(INFO, [b"save", b"", b"appendfsync", b"always"], 100.0)


def levels(facts: Facts, here: float = 100.0) -> dict[str, str]:
    """Return the findings that are not ok."""
    return {check.name: check.level for check in examine(facts, here) if check.level != "ok"}


def message(facts: Facts, name: str) -> str:
    """Return what is found of one kind."""
    return next(check.message for check in examine(facts, 100.0) if check.name == name)


def changed(settings: dict[str, str] | None = None, **info: str) -> Facts:
    """Return a good server's facts with some changed."""
    return Facts(GOOD.info | info, GOOD.settings if settings is None else settings, GOOD.now)


def test_good_server_has_nothing_against_it() -> None:
    """Findings on five kinds, all ok."""
    assert levels(GOOD) == {}
    assert len(examine(GOOD)) == 5


@pytest.mark.parametrize(
    ("facts", "name", "level", "text"),
    [
        (changed(redis_version="6.0.9"), "version", "fail", "Redis 6.0.9 is too old; use Redis 6.2"),
        (changed(redis_version="7.2.4", valkey_version="9.1.0"), "version", "ok", "Valkey 9.1.0"),
        (changed(role="slave"), "role", "fail", "use the URL of its primary"),
        (changed(maxmemory_policy="volatile-lru"), "memory", "fail", "set maxmemory-policy to noeviction"),
        (changed(maxmemory_policy=""), "memory", "warn", "could not be read"),
        (changed({"appendfsync": "everysec"}), "persistence", "ok", "up to a second"),
        (changed({"appendfsync": "no"}), "persistence", "warn", "half a minute"),
        (changed({}), "persistence", "warn", "appendfsync could not be read"),
        (changed({"save": "3600 1"}, aof_enabled="0"), "persistence", "warn", "only snapshots"),
        (changed({"save": ""}, aof_enabled="0"), "persistence", "warn", "loses every run"),
    ],
)
def test_server_that_is_less_than_good(facts: Facts, name: str, level: str, text: str) -> None:
    """Each finding says what is at risk or what to change."""
    assert levels(facts).get(name, "ok") == level
    assert text in message(facts, name)


def test_settings_that_may_not_be_read_are_a_warning() -> None:
    """Managed servers forbid CONFIG."""
    assert "could not be read" in message(Facts(GOOD.info, None, 100.0), "persistence")
    silent = Facts(GOOD.info | {"aof_enabled": "0"}, None, 100.0)
    assert levels(silent) == {"persistence": "warn"}


@pytest.mark.parametrize(("here", "text"), [(90.0, "10 s ahead of"), (130.0, "30 s behind")])
def test_clock_that_is_far_off_is_a_warning(here: float, text: str) -> None:
    """Leases do not suffer, but times in lists look wrong."""
    [finding] = [check for check in examine(GOOD, here) if check.name == "clock"]
    assert finding.level == "warn"
    assert text in finding.message


def test_every_script_is_listed_and_says_what_it_takes() -> None:
    """A script's first line is its signature; no file is left over."""
    files = {
        path.name.removesuffix(".lua"): path.read_text()
        for path in LUA.iterdir()
        if path.name.endswith(".lua")
    }
    assert sorted(files) == sorted((*NAMES, "common"))
    for name in NAMES:
        assert re.match(rf"-- {name}: KEYS .+\.", files[name]), name


def test_scripts_travel_without_comments() -> None:
    """Comments are for readers of the files."""
    assert b"--" not in Script("append").source
