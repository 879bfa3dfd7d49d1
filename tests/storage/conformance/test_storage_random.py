"""Random calls on a backend and on memory, side by side: each gives the same answer."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Struct
from msgspec.structs import asdict

from rewound.errors import RewoundError
from rewound.storage import Answer, Cells, Claim, Commit, Created, Head, Mail, Query
from tests.storage.conftest import REAL, VIRTUAL
from tests.storage.stores import HOUR, LEASE, REACTORS, MemoryStore, Store, new_run

Step: TypeAlias = tuple[str, ...]

RUNS = ("r1", "r2", "r3")
SPACES = ("map", "map/1")
MAIL = ("m1", "m2")
PAST, FUTURE = 1_000_000_000.0, 5_000_000_000.0
DUES: dict[str, Any] = {"keep": UNSET, "past": PAST, "future": FUTURE, "none": None}
CHANGES: dict[str, dict[str, Any]] = {
    "none": {},
    "answer": {},
    "end": {"status": "ended", "terminal": True},
    "retain": {"status": "ended", "terminal": True, "retain": True},
    "reopen": {"status": "running", "terminal": False},
}
HIDDEN = {"created", "updated", "epoch", "nonce"}
"""What a backend may choose, or what depends on its clock."""

OPENING: tuple[Step, ...] = (
    ("create", "r1", "a", "x"),
    ("create", "r2", "b", "x"),
    ("put", "r1", "newest", "map", "right", "set 0 99"),
)
"""Gives the other steps something to do: without it most of them find no run."""

run_ids, nodes, which = st.sampled_from(RUNS), st.sampled_from("ab"), st.sampled_from(["newest", "oldest"])
parting = st.sampled_from(["keep", "release", "wake"])
cells = st.lists(st.sampled_from(["0", "1", "99", "100"]), unique=True).map(" ".join)
"""Numbers; the last is in another bucket of Redis than the others."""

steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("create"), run_ids, st.sampled_from(["a", "b", ""]), st.sampled_from("xy")),
    st.tuples(st.just("claim"), run_ids, nodes, which),
    st.tuples(
        st.just("append"),
        run_ids,
        which,
        st.sampled_from(["right", "wrong"]),
        st.sampled_from([*CHANGES]),
        parting,
    ),
    st.tuples(st.just("park"), run_ids, st.sampled_from([*DUES])),
    st.tuples(st.just("repeat"), run_ids),
    st.tuples(
        st.just("put"),
        run_ids,
        which,
        st.sampled_from(SPACES),
        st.sampled_from(["right", "wrong"]),
        st.tuples(st.sampled_from(["keep", "set"]), cells).map(" ".join),
    ),
    st.tuples(st.just("put_again"), run_ids),
    st.tuples(st.just("release"), run_ids, which, parting),
    st.tuples(st.just("acknowledge"), run_ids),
    st.tuples(st.just("post"), run_ids, st.sampled_from(MAIL)),
    st.tuples(st.just("attention"), nodes),
    st.tuples(st.just("die"), nodes, st.sampled_from(["expire", "leave"])),
    st.tuples(st.just("runs"), st.sampled_from(["", "running", "ended"])),
)


class Player:
    """Plays steps on one store; remembers heads, claims and commits to use them again, late or twice."""

    def __init__(self, store: Store) -> None:
        self._store, self._storage = store, store.storage
        self._numbers = count()
        self._heads: defaultdict[str, list[Head]] = defaultdict(list)
        self._claims: defaultdict[str, list[Claim]] = defaultdict(list)
        self._commits: dict[str, Commit] = {}
        self._writes: dict[str, Cells] = {}
        self._nodes = {"a": "a", "b": "b"}

    async def join(self) -> None:
        """Start the nodes."""
        for node in self._nodes.values():
            await self._storage.join(node, LEASE)

    async def play(self, step: Step) -> Any:
        """Carry out a step; return its answer and everything that can be read after it."""
        method: Callable[..., Awaitable[Any]] = getattr(self, f"_{step[0]}")
        try:
            answer = await method(*step[1:])
        except RewoundError as refusal:
            answer = type(refusal)
        journals = [await self._storage.load(run_id) for run_id in RUNS]
        for journal in journals:
            if journal is not None:
                self._heads[journal.head.run_id].append(journal.head)
        mail = [await self._storage.mail(run_id) for run_id in RUNS]
        replies = [await self._storage.reply(f"{mail_id}-{run_id}") for run_id in RUNS for mail_id in MAIL]
        spaces = [await self._storage.space(run_id, space, 0, 101) for run_id in RUNS for space in SPACES]
        return plain(answer), [plain(journal) for journal in journals], mail, replies, spaces

    async def _create(self, run_id: str, node: str, who: str) -> Created:
        run = new_run(run_id, commit=f"{who}-{run_id}", nonce=f"{who}-{run_id}")
        created = await self._storage.create(run, self._nodes.get(node))
        self._claims[run_id] += [created.claim] if created.claim else []
        return created

    async def _claim(self, run_id: str, node: str, which: str) -> Claim | None:
        head = chosen(self._heads[run_id], which)
        if head is None:
            return None
        claim = await self._storage.claim(head, self._nodes[node], f"n{next(self._numbers)}")
        self._claims[run_id] += [claim] if claim else []
        return claim

    async def _append(self, run_id: str, which: str, length: str, change: str, parting: str) -> Any:
        unread = await self._storage.mail(run_id) if change == "answer" else []
        return await self._commit(
            run_id,
            which,
            wrong=length == "wrong",
            answers=[Answer(mail.id, b"done") for mail in unread],
            release=parting != "keep",
            wake=parting == "wake",
            **CHANGES[change],
        )

    async def _park(self, run_id: str, due: str) -> Any:
        return await self._commit(run_id, "newest", due=DUES[due], release=due != "keep")

    async def _commit(self, run_id: str, which: str, *, wrong: bool = False, **changes: Any) -> Any:
        claim, head = chosen(self._claims[run_id], which), chosen(self._heads[run_id], "newest")
        if claim is None or head is None:
            return None
        number = next(self._numbers)
        commit = Commit(claim, f"c{number}", head.length + wrong, [b"%d" % number], retention=HOUR, **changes)
        self._commits[run_id] = commit
        return await self._storage.append(commit)

    async def _repeat(self, run_id: str) -> Any:
        commit = self._commits.get(run_id)
        return None if commit is None else await self._storage.append(commit)

    async def _put(self, run_id: str, which: str, space: str, version: str, what: str) -> Any:
        claim, page = chosen(self._claims[run_id], which), await self._storage.space(run_id, space, 0, 0)
        if claim is None or page is None:
            return None
        header, *cells = what.split()
        number = b"%d" % next(self._numbers)
        self._writes[run_id] = Cells(
            claim,
            space,
            f"p{number.decode()}",
            page.version + (version == "wrong"),
            dict.fromkeys(map(int, cells), number),
            number if header == "set" else None,
        )
        return await self._storage.put(self._writes[run_id])

    async def _put_again(self, run_id: str) -> int | None:
        cells = self._writes.get(run_id)
        return None if cells is None else await self._storage.put(cells)

    async def _release(self, run_id: str, which: str, parting: str) -> bool | None:
        claim = chosen(self._claims[run_id], which)
        if claim is None:
            return None
        return await self._storage.release(claim, retention=HOUR, wake=parting == "wake")

    async def _acknowledge(self, run_id: str) -> bool:
        return await self._storage.acknowledge(run_id, HOUR)

    async def _post(self, run_id: str, mail_id: str) -> Head | None:
        return await self._storage.post(run_id, Mail(f"{mail_id}-{run_id}", b"body", "b"))

    async def _attention(self, node: str) -> list[tuple[str, str]]:
        """Look without moving alarms, so that the order of the reasons does not matter later."""
        page = await self._storage.attention(self._nodes[node], REACTORS, 0.0)
        return sorted((need.head.run_id, need.reason) for need in page.needs)

    async def _die(self, node: str, how: str) -> None:
        """End a node; it comes back under a new id, as nodes do."""
        await (self._store.expire if how == "expire" else self._storage.leave)(self._nodes[node])
        self._nodes[node] = f"{node}{next(self._numbers)}"
        await self._storage.join(self._nodes[node], LEASE)

    async def _runs(self, status: str) -> list[str]:
        page = await self._storage.runs(Query(status=status or None))
        return sorted(head.run_id for head in page.heads)


def chosen(things: list[Any], which: str) -> Any:
    """Return the newest or oldest, if there is any."""
    return things[-1 if which == "newest" else 0] if things else None


def plain(answer: Any) -> Any:
    """Return what two backends must agree about."""
    if not isinstance(answer, Struct):
        return answer
    fields = {name: plain(value) for name, value in asdict(answer).items() if name not in HIDDEN}
    if "expires" in fields:
        fields["expires"] = fields["expires"] is not None
    return fields


async def play_both(opened: AbstractAsyncContextManager[Store], played: list[Step]) -> None:
    """Play the steps on a fresh backend and on memory, comparing after each."""
    async with opened as store, MemoryStore().running() as model:
        players = Player(store), Player(model)
        for player in players:
            await player.join()
        for step in (*OPENING, *played):
            found, expected = [await player.play(step) for player in players]
            assert found == expected, step


@pytest.fixture(params=[name for name in VIRTUAL | REAL if name != "memory"])
def make(request: pytest.FixtureRequest) -> Callable[[Path], AbstractAsyncContextManager[Store]]:
    """Return what makes a fresh store, as often as it is called."""
    return partial((VIRTUAL | REAL)[request.param], request)


def test_random_calls_are_answered_as_by_memory(
    make: Callable[[Path], AbstractAsyncContextManager[Store]], tmp_path: Path
) -> None:
    """Promises 1, 2, 5 and 6 under any order of calls, late claims and repeats."""
    folders = count()

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(steps, min_size=5, max_size=40))
    def play(played: list[Step]) -> None:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        anyio.run(play_both, make(folder), played)

    play()
