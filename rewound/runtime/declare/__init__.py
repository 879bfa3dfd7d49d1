"""What a user declares, and the plan made of it. Pure: no I/O, no clock, no tasks."""

from rewound.runtime.context import Context, idempotency_key
from rewound.runtime.declare.binding import element, value
from rewound.runtime.declare.build import plan_of
from rewound.runtime.declare.calls import MISSING, Call
from rewound.runtime.declare.check import check_module, lint
from rewound.runtime.declare.children import ComposeDef, MapDef
from rewound.runtime.declare.classes import Step, use
from rewound.runtime.declare.codec import OutputError
from rewound.runtime.declare.compat import compatible, steps_in
from rewound.runtime.declare.compose import BATCH_SIZE, compose, fan_out, map_each
from rewound.runtime.declare.decorators import step
from rewound.runtime.declare.duration import Duration, seconds
from rewound.runtime.declare.elements import ElementInputs, child_inputs
from rewound.runtime.declare.failures import describe_error
from rewound.runtime.declare.handlers import HandlerDef
from rewound.runtime.declare.inputs import decode_inputs, load_inputs, redacted_inputs
from rewound.runtime.declare.markers import Redact, Skipped
from rewound.runtime.declare.plan import HandlerPlan, MapPlan, Plan, Shape, SourcePlan, StepKind, StepPlan
from rewound.runtime.declare.prepare import prepare
from rewound.runtime.declare.reactor import Reactor
from rewound.runtime.declare.registry import plans_for, reactors_defined
from rewound.runtime.declare.results import decode_result, encode_result
from rewound.runtime.declare.retry import ONCE, Retry
from rewound.runtime.declare.rows import decode_item, encode_item, list_items, open_source
from rewound.runtime.declare.sources import SourceDef, source
from rewound.runtime.declare.steps import StepBase, StepDef, SyncStepDef

__all__ = [
    "BATCH_SIZE",
    "MISSING",
    "ONCE",
    "Call",
    "ComposeDef",
    "Context",
    "Duration",
    "ElementInputs",
    "HandlerDef",
    "HandlerPlan",
    "MapDef",
    "MapPlan",
    "OutputError",
    "Plan",
    "Reactor",
    "Redact",
    "Retry",
    "Shape",
    "Skipped",
    "SourceDef",
    "SourcePlan",
    "Step",
    "StepBase",
    "StepDef",
    "StepKind",
    "StepPlan",
    "SyncStepDef",
    "check_module",
    "child_inputs",
    "compatible",
    "compose",
    "decode_inputs",
    "decode_item",
    "decode_result",
    "describe_error",
    "element",
    "encode_item",
    "encode_result",
    "fan_out",
    "idempotency_key",
    "lint",
    "list_items",
    "load_inputs",
    "map_each",
    "open_source",
    "plan_of",
    "plans_for",
    "prepare",
    "reactors_defined",
    "redacted_inputs",
    "seconds",
    "source",
    "step",
    "steps_in",
    "use",
    "value",
]
