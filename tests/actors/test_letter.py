"""Letters: mail by the batch, and answers that come when the actor likes."""

from typing import Any

import anyio
import pytest

from rewound.actors import Actor, Letter, Supervisor
from tests.actors.parts import RefusedError

pytestmark = pytest.mark.anyio


class Batcher(Actor[int]):
    """Replies to a batch when all of it was seen; refuses odd numbers."""

    key = "batcher"

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    async def handle(self, letters: list[Letter[int]]) -> None:
        """Take mail by the batch."""
        self.batches.append([letter.message for letter in letters])
        for letter in letters:
            if letter.message % 2:
                letter.fail(RefusedError("odd"))
            else:
                letter.reply(len(letters))


async def test_handle_gets_all_mail_that_waits() -> None:
    """An actor may treat its mail by the batch and answer each letter, or fail it."""
    batcher = Batcher()
    answers: list[Any] = []

    async def ask(message: int) -> None:
        try:
            answers.append(await batcher.ref.ask(message))
        except RefusedError as refusal:
            answers.append(str(refusal))

    async with Supervisor() as supervisor, anyio.create_task_group() as tasks:
        ref = supervisor.start(batcher)
        await ref.tell(4)
        tasks.start_soon(ask, 2)
        tasks.start_soon(ask, 3)
    assert sorted(answers, key=str) == [3, "odd"]
    assert sorted(batcher.batches[0]) == [2, 3, 4]


async def test_a_letter_tells_whether_a_reply_is_expected() -> None:
    """A letter expects a reply until it has one, or its asker has gone; answering again is harmless."""
    kept: list[Letter[str]] = []

    class Keeper(Actor[str]):
        key = "keeper"

        async def handle(self, letters: list[Letter[str]]) -> None:
            kept.extend(letters)

    async with Supervisor() as supervisor:
        ref = supervisor.start(Keeper())
        await ref.tell("told")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ref.ask, "asked")
            await anyio.wait_all_tasks_blocked()
            assert [letter.expects_reply for letter in kept] == [False, True]
            tasks.cancel_scope.cancel()
    assert [letter.expects_reply for letter in kept] == [False, False]
    for letter in kept:
        letter.reply(1)
        letter.fail(ValueError("late"))
    assert repr(kept) == "[Letter('told'), Letter('asked')]"


async def test_a_letter_may_be_answered_after_handle() -> None:
    """An actor can keep a letter and answer it when later mail allows it; the first answer counts."""

    class Exchange(Actor[str]):
        key = "exchange"
        kept: Letter[str] | None = None

        async def handle(self, letters: list[Letter[str]]) -> None:
            for letter in letters:
                if self.kept is not None:
                    self.kept.reply(letter.message)
                    self.kept.reply("ignored")
                self.kept = letter

    async with Supervisor() as supervisor:
        ref = supervisor.start(Exchange())
        async with anyio.create_task_group() as tasks:

            async def send_later() -> None:
                await anyio.wait_all_tasks_blocked()
                await ref.tell("second")

            tasks.start_soon(send_later)
            assert await ref.ask("first") == "second"
