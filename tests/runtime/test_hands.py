"""Tasks that run bodies one after another."""

from contextvars import ContextVar

import anyio
import pytest
from anyio import get_current_task

from rewound.runtime.owners.hands import Hands

pytestmark = pytest.mark.anyio

mark: ContextVar[object] = ContextVar("mark", default=None)


class Odd:
    """A value that cannot be compared."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("not comparable")


class Jobs:
    """Jobs that note the task they ran in, and what they saw of the context."""

    def __init__(self) -> None:
        self.tasks: list[int] = []
        self.seen: list[object] = []

    async def plain(self) -> None:
        """Leave no trace in the task."""
        self.tasks.append(get_current_task().id)
        self.seen.append(mark.get())

    async def marking(self) -> None:
        """Set a context variable."""
        await self.plain()
        mark.set("mine")

    async def odd(self) -> None:
        """Replace a value by another that cannot be compared with it."""
        await self.plain()
        mark.set(Odd())


async def test_jobs_that_follow_each_other_share_a_task() -> None:
    """A job that begins when another has ended runs in the task of that one."""
    jobs = Jobs()
    async with anyio.create_task_group() as tasks:
        hands = Hands(tasks)
        for _ in range(3):
            hands.do(jobs.plain)
            await anyio.wait_all_tasks_blocked()
        hands.dismiss()
    assert len(set(jobs.tasks)) == 1


async def test_jobs_at_the_same_time_have_tasks_of_their_own() -> None:
    """Two jobs that are begun together do not wait for each other."""
    jobs, met = Jobs(), anyio.Event()

    async def waiting() -> None:
        await jobs.plain()
        await met.wait()

    async def meeting() -> None:
        await jobs.plain()
        met.set()

    async with anyio.create_task_group() as tasks:
        hands = Hands(tasks)
        hands.do(waiting)
        hands.do(meeting)
        await anyio.wait_all_tasks_blocked()
        hands.dismiss()
    assert len(set(jobs.tasks)) == 2


async def test_a_context_variable_is_not_seen_by_the_next_job() -> None:
    """What a body sets in its context stays there."""
    jobs = Jobs()
    async with anyio.create_task_group() as tasks:
        hands = Hands(tasks)
        for job in (jobs.marking, jobs.plain):
            hands.do(job)
            await anyio.wait_all_tasks_blocked()
        hands.dismiss()
    assert jobs.seen == [None, None]


async def test_values_that_cannot_be_compared() -> None:
    """A context whose values refuse comparison counts as changed."""
    jobs, first = Jobs(), Odd()
    mark.set(first)
    async with anyio.create_task_group() as tasks:
        hands = Hands(tasks)
        for job in (jobs.odd, jobs.plain):
            hands.do(job)
            await anyio.wait_all_tasks_blocked()
        hands.dismiss()
    assert jobs.seen[1] is first


async def test_a_failing_job_ends_the_group() -> None:
    """What a job raises is raised by the task group, also when the task did other jobs before."""

    async def failing() -> None:
        raise ValueError("broken")

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            hands = Hands(tasks)
            hands.do(Jobs().plain)
            await anyio.wait_all_tasks_blocked()
            hands.do(failing)

    with pytest.raises(ExceptionGroup) as raised:
        await work()
    assert raised.group_contains(ValueError)
