"""One attempt of a body, by itself."""

from typing import Never

import pytest
from anyio import CapacityLimiter

from rewound import Retry
from rewound.actors import VirtualClock
from rewound.runtime.engine.messages import Interrupted
from rewound.runtime.owners.attempt import Attempt, failure_of

pytestmark = pytest.mark.anyio


async def never() -> Never:
    """Be a body that must not begin."""
    pytest.fail("the body has begun")


async def test_cut_before_it_began(virtual_clock: VirtualClock) -> None:
    """V1: an attempt that is cut before its task runs does not begin its body."""
    attempt = Attempt(virtual_clock, CapacityLimiter(1))
    attempt.cut()
    with pytest.raises(Exception, match=r"^$") as raised:
        await attempt.run(never, in_thread=False, limit=None)
    meaning = failure_of(raised.value, step="a", attempt=1, retry=Retry())
    assert isinstance(meaning, Interrupted)
