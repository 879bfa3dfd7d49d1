"""The names of everything that is kept in Redis.

All keys of one run carry the hash tag `{run id}`, so they share a slot and one script may write them.
All keys of the index carry the tag `{prefix}`: they share another. No script ever writes both.

::

    rewound:{<run>}:head                    hash: see lua/common.lua
    rewound:{<run>}:journal                 list of records
    rewound:{<run>}:cells:<bucket>          hash: headers of spaces and cells, see lua/put.lua
    rewound:{<run>}:mail                    hash: mail id -> letter, see lua/post.lua
    rewound:{<run>}:watch                   hash: channel -> notice
    rewound:{<run>}:reply:<mail>            text, kept for ten minutes

    {rewound}:all                           runs by their time of creation
    {rewound}:status:<s>  :reactor:<r>      the same, of one status, of one reactor
    {rewound}:expiring                      ended runs by the time when they expire
    {rewound}:nodes                         nodes by the time when they joined
    {rewound}:lease:<node>                  exists while the lease does
    {rewound}:owner:<node>                  what a node owns, by time; ["<run>","<claim's nonce>"]
    {rewound}:wake                          what somebody must look at, by time; ["<run>","<cause>"]
    {rewound}:timer                         alarms by due time; ["<run>","<cause>"]
    {rewound}:sent:<mail>                   the run that a piece of mail went to

    rewound:node:<node>                     the channel of a node's notices
"""

from collections.abc import Callable
from functools import lru_cache, partial

import msgspec

from rewound.errors import StorageConfigError
from rewound.storage.redis.scripts import pack_keys

__all__ = ["BUCKETS", "SUSPECT", "Keys", "RunKeys", "entry_name", "split_entry"]

BUCKETS = 64
"""Hashes that share the cells of a run, however many spaces and cells it has.

All of them expire, or stay, in one script with the rest of the run, so their number must be small; each is
freed at once when it expires, so their size must not be large. A million cells are 16,000 in each.
"""

SUSPECT = "~"
"""Marks the name of a timer entry that was found stale once."""


class RunKeys:
    """The keys of one run."""

    __slots__ = ("head", "journal", "mail", "packed", "stem", "tag", "watch")

    def __init__(self, prefix: str, run_id: str) -> None:
        tag = _escape(run_id)
        stem = f"{prefix}:{{{tag}}}:".encode()
        self.tag = tag.encode()
        self.stem = stem
        self.head = stem + b"head"
        self.journal = stem + b"journal"
        self.mail = stem + b"mail"
        self.watch = stem + b"watch"
        self.packed = pack_keys(self.all())

    def all(self) -> list[bytes]:
        """Return the keys that live and expire together, but for those of the cells."""
        return [self.head, self.journal, self.mail, self.watch]

    def bucket(self, number: int) -> bytes:
        """Return a key of cells; numbers beyond the last bucket go round."""
        return b"%bcells:%d" % (self.stem, number % BUCKETS)

    def buckets(self) -> list[bytes]:
        """Return the keys of the cells; they live and expire with `all`."""
        return [self.bucket(number) for number in range(BUCKETS)]

    def reply(self, mail_id: str) -> bytes:
        """Return the key of a reply."""
        return self.stem + b"reply:" + mail_id.encode()


class Keys:
    """The keys under one prefix.

    Args:
        prefix: keeps several installations apart in one database.

    Raises:
        StorageConfigError: the prefix is empty or has braces, which would change the slots.
    """

    def __init__(self, prefix: str) -> None:
        if not prefix or set(prefix) & set("{}*?[]\\"):
            raise StorageConfigError(
                f"the Redis key prefix {prefix!r} is empty or has one of {{}}*?[]\\; use a plain name"
            )
        self.prefix = prefix
        self.index_tag = prefix.encode()
        self.index = f"{{{prefix}}}:".encode()
        self.every = self.index + b"all"
        self.expiring = self.index + b"expiring"
        self.nodes = self.index + b"nodes"
        self.wake = self.index + b"wake"
        self.timer = self.index + b"timer"
        self.leases = self.index + b"lease:"
        self.owners = self.index + b"owner:"
        self.channels = f"{prefix}:node:"
        self.heads = f"{prefix}:{{*}}:head"
        # A run is written once per step: its keys are not spelled anew each time.
        self.run: Callable[[str], RunKeys] = lru_cache(maxsize=4096)(partial(RunKeys, prefix))

    def run_of(self, head: bytes) -> str:
        """Return the id of the run that a head's key belongs to."""
        tag = head.decode().removeprefix(f"{self.prefix}:{{").removesuffix("}:head")
        return _unescape(tag)

    def status(self, status: str) -> bytes:
        """Return the index of one status."""
        return self.index + b"status:" + status.encode()

    def reactor(self, reactor: str) -> bytes:
        """Return the index of one reactor."""
        return self.index + b"reactor:" + reactor.encode()

    def owner(self, node: str) -> bytes:
        """Return the index of what a node owns."""
        return self.owners + node.encode()

    def lease(self, node: str) -> bytes:
        """Return the key of a node's lease."""
        return self.leases + node.encode()

    def sent(self, mail_id: str) -> bytes:
        """Return the key that tells which run a piece of mail went to."""
        return self.index + b"sent:" + mail_id.encode()

    def channel(self, node: str) -> str:
        """Return the channel of a node's notices."""
        return self.channels + node


def entry_name(run_id: str, *causes: str) -> str:
    """Name an index entry after its run and the one write that needs it.

    No two writes share an entry, so whoever ends a need can remove its entry without asking whether
    another write needs it too.
    """
    return msgspec.json.encode((run_id, *causes)).decode()


def split_entry(name: str) -> list[str]:
    """Take an entry's name apart: the run, and what else is in it."""
    return msgspec.json.decode(name.removesuffix(SUSPECT), type=list[str])


def _escape(run_id: str) -> str:
    """Keep a brace, or an empty id, from ending the hash tag early."""
    if "}" in run_id or "%" in run_id:
        run_id = run_id.replace("%", "%25").replace("}", "%7d")
    return run_id or "%"


def _unescape(tag: str) -> str:
    return "" if tag == "%" else tag.replace("%7d", "}").replace("%25", "%")
