"""The Lua scripts, and commands packed for the wire."""

import hashlib
from collections.abc import Sequence
from importlib.resources import files

__all__ = ["SCRIPTS", "Script", "load_commands", "pack"]

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
    """Pack one command. A plain loop: redis-py's own costs three times as much, on every append."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word.encode() if isinstance(word, str) else word
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


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

    def call(self, keys: Sequence[bytes], *words: bytes | str) -> bytes:
        """Pack a call by the script's hash; a server that does not know it is taught by the lane."""
        return pack((b"EVALSHA", self.sha, b"%d" % len(keys), *keys, *words))

    def spell(self, keys: Sequence[bytes], *words: bytes | str) -> bytes:
        """Pack a call with the whole source.

        For what must not be refused as unknown while a script sent right after it is accepted.
        """
        return pack((b"EVAL", self.source, b"%d" % len(keys), *keys, *words))


def _code(text: str) -> str:
    """Leave the comments out: some scripts travel often."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))


SCRIPTS = {name: Script(name) for name in NAMES}


def load_commands() -> list[bytes]:
    """Pack the commands that teach a server every script."""
    return [pack((b"SCRIPT", b"LOAD", script.source)) for script in SCRIPTS.values()]
