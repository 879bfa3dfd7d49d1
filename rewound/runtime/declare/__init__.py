"""What a user declares, and the plan made of it. Pure: no I/O, no clock, no tasks."""

from rewound.runtime.context import Context, idempotency_key
from rewound.runtime.declare.binding import element, value
from rewound.runtime.declare.build import plan_of
from rewound.runtime.declare.calls import MISSING, Call
from rewound.runtime.declare.check import check_module, lint
from rewound.runtime.declare.children import ComposeDef
from rewound.runtime.declare.classes import Step, use
from rewound.runtime.declare.codec import OutputError
from rewound.runtime.declare.compat import compatible
from rewound.runtime.declare.compose import compose
from rewound.runtime.declare.decorators import step
from rewound.runtime.declare.duration import Duration, seconds
from rewound.runtime.declare.elements import child_inputs
from rewound.runtime.declare.failures import describe_error
from rewound.runtime.declare.handlers import HandlerDef
from rewound.runtime.declare.inputs import decode_inputs, load_inputs, redacted_inputs
from rewound.runtime.declare.markers import Redact, Skipped
from rewound.runtime.declare.plan import HandlerPlan, Plan, Shape, StepPlan
from rewound.runtime.declare.prepare import prepare
from rewound.runtime.declare.reactor import Reactor
from rewound.runtime.declare.registry import plans_for, reactors_defined
from rewound.runtime.declare.results import decode_result, encode_result
from rewound.runtime.declare.retry import ONCE, Retry
from rewound.runtime.declare.steps import StepBase, StepDef, SyncStepDef

__all__ = [
    "MISSING",
    "ONCE",
    "Call",
    "ComposeDef",
    "Context",
    "Duration",
    "HandlerDef",
    "HandlerPlan",
    "OutputError",
    "Plan",
    "Reactor",
    "Redact",
    "Retry",
    "Shape",
    "Skipped",
    "Step",
    "StepBase",
    "StepDef",
    "StepPlan",
    "SyncStepDef",
    "check_module",
    "child_inputs",
    "compatible",
    "compose",
    "decode_inputs",
    "decode_result",
    "describe_error",
    "element",
    "encode_result",
    "idempotency_key",
    "lint",
    "load_inputs",
    "plan_of",
    "plans_for",
    "prepare",
    "reactors_defined",
    "redacted_inputs",
    "seconds",
    "step",
    "use",
    "value",
]
