"""The bodies and handlers of one run that are running here, each in a task of its own."""

from collections.abc import Callable, Hashable
from typing import Any

from anyio.abc import TaskGroup

from rewound.runtime.context import Context, Kind, idempotency_key
from rewound.runtime.declare import (
    HandlerPlan,
    Plan,
    Reactor,
    StepPlan,
    decode_result,
    encode_result,
    prepare,
)
from rewound.runtime.engine import RunHandler, RunState
from rewound.runtime.engine.decide import handler_of
from rewound.runtime.engine.messages import Failure, HandlerDone, Interrupted, Result, Settled, Success
from rewound.runtime.engine.state import Entry
from rewound.runtime.outcomes import StepError
from rewound.runtime.owners.attempt import Attempt, failure_of
from rewound.runtime.owners.hands import Hands
from rewound.runtime.owners.letters import HandlerCut, OwnerMail
from rewound.runtime.owners.services import Services

__all__ = ["Bodies"]

Report = Callable[[Hashable, OwnerMail], None]


class Bodies:
    """Runs bodies and reports how each ended; knows nothing of rules.

    Args:
        services: the node's slots, clock and state.
        plan: the run's plan.
        run_id: the run.
        instance: its inputs.
        state: its state, read for results and errors only.
        tasks: the owner's task group.
        report: takes a key and a message, never waits.
    """

    def __init__(
        self,
        services: Services,
        plan: Plan,
        run_id: str,
        *,
        instance: Reactor[Any],
        state: RunState,
        tasks: TaskGroup,
        report: Report,
    ) -> None:
        self._services = services
        self._plan = plan
        self._run_id = run_id
        self._instance = instance
        self._state = state
        self._tasks = tasks
        self._hands = Hands(tasks)
        self._report = report
        self.steps: dict[str, Attempt] = {}
        self.handler: Entry | None = None
        self._handling: Attempt | None = None

    @property
    def reactor(self) -> str:
        """The stored name of what runs."""
        return self._plan.name

    @property
    def busy(self) -> bool:
        """Whether any user code is running."""
        return bool(self.steps) or self.handler is not None

    def start(self, step: str, attempt: int, *, granted: bool) -> None:
        """Start a step's body; `granted`: a slot was taken for it already."""
        running = Attempt(self._services.clock, self._services.threads)
        self.steps[step] = running
        plan = self._plan.steps[step]
        self._hands.do(lambda: self.run_step(plan, attempt, running, granted=granted))

    def start_handler(self, effect: RunHandler) -> None:
        """Start an undo or a compensate."""
        self.handler = (effect.kind, effect.step)
        self._handling = running = Attempt(self._services.clock, self._services.threads)
        plan = self._plan.steps[effect.step]
        self._hands.do(lambda: self.run_handler(plan, effect, running))

    def cut(self, step: str) -> None:
        """Cut a body off; it reports when it has ended."""
        attempt = self.steps.get(step)
        if attempt is not None and not attempt.cut_off:
            attempt.cut()

    def cut_all(self) -> None:
        """Cut everything off, because the node closes."""
        for step in self.steps:
            self.cut(step)
        if self._handling is not None:
            self._handling.cut()

    def end(self) -> None:
        """End all tasks: cancel those that run something, let the others go."""
        if self.busy:
            self._tasks.cancel_scope.cancel()
        self._hands.dismiss()

    async def run_step(self, step: StepPlan, number: int, running: Attempt, *, granted: bool) -> None:
        """Run one attempt of a step in this task and report it. `start` calls it."""
        generation = self._state.generation
        slots = self._services.slots
        result: Result = Interrupted()
        if granted or await running.turn(slots):
            try:
                result = await self._forward(step, number, running)
            finally:
                slots.release()
        settled = Settled(self._services.time(), step.name, number, generation, result)
        self._report(("step", step.name), settled)

    async def _forward(self, step: StepPlan, number: int, running: Attempt) -> Result:
        began = False
        try:
            context = self._context(step.name, number, "forward")
            body = prepare(
                self._plan, step, step.call, self._instance, self._result_of, error=None, ctx=context
            )
            began = True
            value = await running.run(body, in_thread=not step.call.is_async, limit=step.timeout)
            raw, skipped = encode_result(step, value, max_payload=self._services.settings.max_payload)
        except BaseException as error:  # noqa: BLE001 - rule S8; failure_of lets through what must be
            return failure_of(error, step=step.name, attempt=number, retry=step.retry, started=began)
        return Success(raw, skipped)

    async def run_handler(self, step: StepPlan, effect: RunHandler, running: Attempt) -> None:
        """Run one attempt of an undo or compensate and report it. `start_handler` calls it."""
        slots = self._services.slots
        failure: Failure | Interrupted | None = Interrupted()
        if await running.turn(slots):
            try:
                failure = await self._backward(step, effect, running)
            finally:
                slots.release()
        self._handling = None
        at, key = self._services.time(), ("handler", effect.kind, effect.step)
        if isinstance(failure, Interrupted):
            self._report(key, HandlerCut(effect.step, effect.kind))
        else:
            done = HandlerDone(at, effect.step, effect.kind, effect.attempt, failure, effect.rollback)
            self._report(key, done)

    async def _backward(
        self, step: StepPlan, effect: RunHandler, running: Attempt
    ) -> Failure | Interrupted | None:
        handler = handler_of(self._plan, effect.kind, effect.step)
        try:
            body = self._prepare_handler(step, handler, effect)
            await running.run(body, in_thread=not handler.call.is_async, limit=handler.timeout)
        except BaseException as error:  # noqa: BLE001 - rules S5 and S8; failure_of lets through what must be
            result = failure_of(error, step=step.name, attempt=effect.attempt, retry=handler.retry)
            if isinstance(result, Failure | Interrupted):
                return result
            return _halted_in_handler(step.name, effect)
        return None

    def _prepare_handler(self, step: StepPlan, handler: HandlerPlan, effect: RunHandler) -> Callable[[], Any]:
        own = self._state.steps[step.name]
        cut_off = StepError("Cancelled", "the step was cut off before it settled", step.name, own.attempt)
        return prepare(
            self._plan,
            step,
            handler.call,
            self._instance,
            self._result_of,
            error=(own.error or cut_off) if effect.kind == "compensate" else None,
            ctx=self._context(step.name, effect.attempt, effect.kind),
        )

    def _context(self, step: str, attempt: int, kind: Kind) -> Context[Any]:
        return Context(
            run_id=self._run_id,
            step=step,
            attempt=attempt,
            idempotency_key=idempotency_key(self._run_id, step, self._state.generation, kind),
            state=self._services.state,
        )

    def _result_of(self, step: str) -> Any:
        # a step runs when all that it reads has completed, and what has completed has a value
        return decode_result(self._plan.steps[step], self._state.steps[step].value or b"")


def _halted_in_handler(step: str, effect: RunHandler) -> Failure:
    message = f"{effect.kind} raised Halt, which has no meaning in a rollback"
    return Failure(StepError("Halt", message, step, effect.attempt))
