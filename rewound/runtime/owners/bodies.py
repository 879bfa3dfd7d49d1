"""The bodies and handlers of one run that are running here, each in a task of its own."""

from collections.abc import Callable, Hashable
from typing import Any

from rewound.errors import RewoundError
from rewound.runtime.context import Context, Kind, idempotency_key
from rewound.runtime.declare import (
    ONCE,
    HandlerPlan,
    Plan,
    StepPlan,
    child_inputs,
    encode_result,
    prepare,
)
from rewound.runtime.engine import (
    Level,
    Open,
    Path,
    Place,
    RunBody,
    RunHandler,
    RunState,
    handler_of,
    level_at,
)
from rewound.runtime.engine.messages import (
    Failure,
    HandlerDone,
    Interrupted,
    Opened,
    Result,
    Settled,
    Success,
)
from rewound.runtime.outcomes import StepError
from rewound.runtime.owners.attempt import Attempt, failure_of
from rewound.runtime.owners.hands import Hands
from rewound.runtime.owners.letters import HandlerCut, WorkMail
from rewound.runtime.owners.services import Services
from rewound.runtime.owners.values import Site, Values

__all__ = ["Bodies"]

Report = Callable[[Hashable, WorkMail], None]


class Bodies:
    """Runs bodies and reports how each ended; knows nothing of rules.

    Args:
        services: the node's slots, clock and state.
        plan: the run's plan.
        site: where the state is stored.
        values: decodes inputs and results.
        state: its state, read for errors only.
        hands: the owner's tasks.
        report: takes a key and a message, never waits.

    Attributes:
        steps: the bodies that run, by their place.
        handlers: the undos and compensates that run.
    """

    def __init__(
        self,
        services: Services,
        plan: Plan,
        site: Site,
        *,
        values: Values,
        state: RunState,
        hands: Hands,
        report: Report,
    ) -> None:
        self._services = services
        self._plan = plan
        self._site = site
        self._state = state
        self._hands = hands
        self._report = report
        self._values = values
        self.steps: dict[Place, Attempt] = {}
        self.handlers: dict[Place, Attempt] = {}

    @property
    def reactor(self) -> str:
        """The stored name of what runs."""
        return self._plan.name

    @property
    def busy(self) -> bool:
        """Whether any user code is running."""
        return bool(self.steps or self.handlers)

    def start(self, effect: RunBody, *, granted: bool) -> None:
        """Start a step's body; `granted`: a slot was taken for it already."""
        running = Attempt(self._services.clock, self._services.threads)
        self.steps[effect.path, effect.step] = running
        step = self._level(effect.path).plan.steps[effect.step]
        self._hands.do(lambda: self.run_step(step, effect, running, granted=granted))

    def start_handler(self, effect: RunHandler) -> None:
        """Start an undo or a compensate."""
        running = Attempt(self._services.clock, self._services.threads)
        self.handlers[effect.path, effect.step] = running
        step = self._level(effect.path).plan.steps[effect.step]
        self._hands.do(lambda: self.run_handler(step, effect, running))

    def open(self, effect: Open) -> None:
        """Make a composed child's inputs and report them, or that they cannot be made (rule S2)."""
        level, path = self._level(effect.path), (*effect.path, effect.step)
        at, generation = self._services.time(), level.state.generation
        message: WorkMail
        try:
            values = self._values
            _, inputs = child_inputs(
                level.plan, level.plan.steps[effect.step], values.instance(level), values.of(level)
            )
        except RewoundError as error:
            refused = failure_of(error, step=effect.step, attempt=effect.attempt, retry=ONCE, started=False)
            message = Settled(at, effect.step, effect.attempt, generation, refused, effect.path)
        else:
            message = Opened(at, path, effect.attempt, generation, inputs)
        self._report(("open", path), message)

    def cut(self, place: Place) -> None:
        """Cut a body off; it reports when it has ended."""
        attempt = self.steps.get(place)
        if attempt is not None and not attempt.cut_off:
            attempt.cut()

    def cut_all(self) -> None:
        """Cut everything off, because the node closes."""
        for running in [*self.steps.values(), *self.handlers.values()]:
            if not running.cut_off:
                running.cut()

    async def run_step(self, step: StepPlan, effect: RunBody, running: Attempt, *, granted: bool) -> None:
        """Run one attempt of a step in this task and report it. `start` calls it."""
        level = self._level(effect.path)
        generation = level.state.generation
        slots = self._services.slots
        result: Result = Interrupted()
        if granted or await running.turn(slots):
            try:
                result = await self._forward(level, step, effect, running)
            finally:
                slots.release()
        at = self._services.time()
        settled = Settled(at, step.name, effect.attempt, generation, result, effect.path)
        self._report(("step", effect.path, step.name), settled)

    async def _forward(self, level: Level, step: StepPlan, effect: RunBody, running: Attempt) -> Result:
        began, values = False, self._values
        try:
            context = self._context(effect.path, step.name, effect.attempt, "forward")
            body = prepare(
                level.plan, step, step.call, values.instance(level), values.of(level), error=None, ctx=context
            )
            began = True
            value = await running.run(body, in_thread=not step.call.is_async, limit=step.timeout)
            raw, skipped = encode_result(step, value, max_payload=self._services.settings.max_payload)
        except BaseException as error:  # noqa: BLE001 - rule S8; failure_of lets through what must be
            return failure_of(error, step=step.name, attempt=effect.attempt, retry=step.retry, started=began)
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
        at, key = self._services.time(), ("handler", effect.kind, effect.path, effect.step)
        if isinstance(failure, Interrupted):
            self._report(key, HandlerCut((effect.path, effect.step)))
        else:
            done = HandlerDone(
                at, effect.step, effect.kind, effect.attempt, failure, effect.rollback, effect.path
            )
            self._report(key, done)

    async def _backward(
        self, step: StepPlan, effect: RunHandler, running: Attempt
    ) -> Failure | Interrupted | None:
        level = self._level(effect.path)
        handler = handler_of(level.plan, effect.kind, effect.step)
        try:
            body = self._prepare_handler(level, step, handler, effect)
            await running.run(body, in_thread=not handler.call.is_async, limit=handler.timeout)
        except BaseException as error:  # noqa: BLE001 - rules S5 and S8; failure_of lets through what must be
            result = failure_of(error, step=step.name, attempt=effect.attempt, retry=handler.retry)
            if isinstance(result, Failure | Interrupted):
                return result
            return _halted_in_handler(step.name, effect)
        return None

    def _prepare_handler(
        self, level: Level, step: StepPlan, handler: HandlerPlan, effect: RunHandler
    ) -> Callable[[], Any]:
        own = level.state.steps[step.name]
        cut_off = StepError("Cancelled", "the step was cut off before it settled", step.name, own.attempt)
        return prepare(
            level.plan,
            step,
            handler.call,
            self._values.instance(level),
            self._values.of(level),
            error=(own.error or cut_off) if effect.kind == "compensate" else None,
            ctx=self._context(effect.path, step.name, effect.attempt, effect.kind),
        )

    def _context(self, path: Path, step: str, attempt: int, kind: Kind) -> Context[Any]:
        site = self._site
        place = "/".join((*site.prefix, *path, step))
        generation = self._state.generation if site.generation is None else site.generation
        return Context(
            run_id=site.run_id,
            step=step,
            attempt=attempt,
            idempotency_key=idempotency_key(site.run_id, place, generation, kind),
            state=self._services.state,
        )

    def _level(self, path: Path) -> Level:
        level = level_at(self._plan, self._state, path)
        if level is None:
            raise LookupError(f"{self._plan.name}: nothing is composed at {'/'.join(path)}")
        return level


def _halted_in_handler(step: str, effect: RunHandler) -> Failure:
    message = f"{effect.kind} raised Halt, which has no meaning in a rollback"
    return Failure(StepError("Halt", message, step, effect.attempt))
