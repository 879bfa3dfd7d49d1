"""The Lua scripts, and commands packed for the wire."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

from msgspec import Struct

__all__ = ["SCRIPTS", "Packed", "Script", "load_commands", "pack", "pack_keys"]

LUA = files("rewound.storage.redis") / "lua"
NAMES = (
    "acknowledge",
    "append",
    "claim",
    "create",
    "defer",
    "index",
    "join",
    "leave",
    "load",
    "nodes",
    "post",
    "put",
    "release",
    "renew",
    "space",
    "sweep",
    "unwatch",
    "watch",
)


def pack(words: Sequence[bytes | str]) -> bytes:
    """Pack one command. By one format: redis-py's own costs ten times as much, on every append."""
    return b"*%d\r\n%b" % (len(words), _pack_words(words))


def _pack_words(words: Sequence[bytes | str]) -> bytes:
    sized: list[int | bytes] = []
    for word in words:
        data = word.encode() if isinstance(word, str) else word
        sized += (len(data), data)
    return _format(len(words)) % tuple(sized)


@lru_cache(maxsize=256)
def _format(words: int) -> bytes:
    return b"$%d\r\n%b\r\n" * words


class Packed(Struct, frozen=True):
    """The number of a script's keys, and the keys, as words ready for the wire."""

    count: int
    data: bytes


def pack_keys(keys: Sequence[bytes]) -> Packed:
    """Pack keys for several calls of scripts."""
    return Packed(len(keys), _pack_words((b"%d" % len(keys), *keys)))


class Script:
    """One script of the `lua` folder.

    Args:
        name: of the file; its first lines say what keys and arguments it takes.
    """

    def __init__(self, name: str) -> None:
        parts = ("index",) if name == "index" else ("common", name)
        self.name = name
        self.source = "\n".join(_code((LUA / f"{part}.lua").read_text()) for part in parts).encode()
        self.sha = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()
        self._called = _pack_words((b"EVALSHA", self.sha))
        self._spelled = _pack_words((b"EVAL", self.source))

    def call(self, keys: Sequence[bytes] | Packed, *words: bytes | str) -> bytes:
        """Pack a call by the script's hash; a server that does not know it is taught by the lane."""
        return _pack_after(self._called, keys, words)

    def spell(self, keys: Sequence[bytes] | Packed, *words: bytes | str) -> bytes:
        """Pack a call with the whole source.

        For what must not be refused as unknown while a script sent right after it is accepted.
        """
        return _pack_after(self._spelled, keys, words)


def _pack_after(script: bytes, keys: Sequence[bytes] | Packed, words: Sequence[bytes | str]) -> bytes:
    """Pack a call whose first two words are packed already: they are long and always the same."""
    keys = keys if isinstance(keys, Packed) else pack_keys(keys)
    return b"*%d\r\n%b%b%b" % (3 + keys.count + len(words), script, keys.data, _pack_words(words))


def _code(text: str) -> str:
    """Leave comments and indentation out: some scripts travel often."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if not line.startswith("--"))


SCRIPTS = {name: Script(name) for name in NAMES}


def load_commands() -> list[bytes]:
    """Pack the commands that teach a server every script."""
    return [pack((b"SCRIPT", b"LOAD", script.source)) for script in SCRIPTS.values()]
