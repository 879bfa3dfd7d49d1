"""`Step` classes, which are reused in several reactors, and `use`, which puts one into a reactor."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast, dataclass_transform

import msgspec
from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.binding import check_bind
from rewound.runtime.declare.checking import checked
from rewound.runtime.declare.declared import DeclaredMeta, fields_of, shown_fields
from rewound.runtime.declare.decorators import options_of
from rewound.runtime.declare.duration import Duration
from rewound.runtime.declare.members import RESERVED
from rewound.runtime.declare.retry import Retry
from rewound.runtime.declare.signature import check_body, is_async, parameters
from rewound.runtime.declare.steps import After, StepDef, StepOptions
from rewound.runtime.declare.wording import label

__all__ = ["Step", "UseDef", "method_of", "use"]

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

_METHODS = {"run": {"ctx"}, "undo": {"ctx", "result"}, "compensate": {"ctx", "error"}}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class StepMeta(DeclaredMeta):
    """The metaclass of class steps: checks the methods, and makes `run` check the inputs."""

    def __new__(metacls, cls_name: str, bases: tuple[type, ...], namespace: dict[str, Any], /) -> Any:
        """Create the class."""
        for method in _METHODS.keys() & namespace.keys():
            _check_method(cls_name, method, namespace[method])
        if "run" in namespace:
            namespace["run"] = _checking(namespace["run"])
        cls = super().__new__(metacls, cls_name, bases, namespace)
        for name in cls.__struct_fields__:
            if name in RESERVED or name in _METHODS:
                raise DefinitionError(f"{label(cls)}: {name!r} is reserved; choose another name.")
        return cls


def _check_method(cls_name: str, method: str, fn: Any) -> None:
    subject = f"{cls_name}.{method}"
    check_body(fn, f"the method {method}")
    for name in parameters(fn, subject):
        if name not in _METHODS[method]:
            allowed = " and ".join(sorted(_METHODS[method]))
            raise DefinitionError(
                f"{subject} takes {name!r}; in a class step inputs are annotated fields, and {method} takes "
                f"only self and {allowed}."
            )


def _checking(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def body(self: Any, *args: Any, **kwargs: Any) -> Any:
        fields = fields_of(type(self))
        checked(fields, {field.name: getattr(self, field.name) for field in fields}, label(self.__class__))
        return run(self, *args, **kwargs)

    return body


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Step(Struct, Generic[R_co], metaclass=StepMeta):
    """A reusable step: annotated fields are its inputs, `run` is its body.

    `undo(self, result)` and `compensate(self, error)` are optional; all three may take `ctx`. Inputs are
    checked whenever `run` is called, by a runtime or by hand; never for undo and compensate.

    Raises:
        DefinitionError: on creating a subclass whose names or methods are wrong.
        InputError: on calling `run` with inputs that do not fit.

    Example:
        >>> class Charge(Step[Receipt]):
        ...     amount: Annotated[int, Meta(gt=0)]
        ...
        ...     async def run(self) -> Receipt: ...
        ...
        ...     async def undo(self, result: Receipt) -> None: ...
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={part!r}' for name, part in shown_fields(self))})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return shown_fields(self)


class UseDef(StepDef[..., R]):
    """A class step as it stands in a reactor."""

    def __init__(self, kind: type[Step[R]], bind: Mapping[str, Any], options: StepOptions) -> None:
        super().__init__(method_of(kind, "run"), options)
        self.kind = kind
        self.bind = dict(bind)
        self.__doc__ = kind.__doc__

    def on(self, instance: object) -> Callable[..., Any]:  # noqa: ARG002
        """Give a function that runs the step by hand, on inputs given by name."""
        return self._call

    async def _call(self, ctx: Any = msgspec.UNSET, **inputs: Any) -> Any:
        told = {} if ctx is msgspec.UNSET else {"ctx": ctx}
        made: Any = self.kind(**inputs)
        result = made.run(**told)
        return await result if is_async(self.fn) else result


def use(
    kind: type[Step[R]],
    *,
    bind: Mapping[str, Any] | None = None,
    retry: Retry | int | None = None,
    timeout: Duration | None = None,
    after: After | Sequence[After] = (),
    cancel_on_failure: bool = False,
    guards: Sequence[Any] = (),
) -> StepDef[..., R]:
    """Put a class step into a reactor.

    Args:
        kind: the class.
        bind: for inputs of the class step: a step object, the name of a step or input, or `value(x)`.
            Those left out are looked up by their own name; then their default applies.
        retry: a `Retry`, or a number of attempts. Default: the step runs once.
        timeout: seconds (or a `timedelta`) that one attempt may take. Default: no limit.
        after: a step, its name, or several, to wait for without reading their results.
        cancel_on_failure: whether a failing sibling cancels this step instead of waiting for it.
        guards: what must be taken before the body starts.

    Raises:
        DefinitionError: this is no class step with a `run`, or an option is wrong.

    Example:
        >>> class Checkout(Reactor[Receipt]):
        ...     price: int
        ...     charge = use(Charge, bind={"amount": "price"})
    """
    if not isinstance(cast("object", kind), StepMeta):
        raise DefinitionError(f"use() takes a subclass of Step, not {kind!r}.")
    subject = f"use({label(kind)})"
    if not hasattr(kind, "run"):
        raise DefinitionError(f"{subject}: {label(kind)} has no run().")
    options = options_of(subject, retry, timeout, after, guards, cancel_on_failure=cancel_on_failure)
    check_bind(subject, kind, bind)
    return UseDef(kind, bind or {}, options)


def method_of(kind: Any, method: str) -> Any:
    """Get a class step's own method, without the check of inputs around `run`; nothing if it has none."""
    fn = inspect.getattr_static(kind, method, None)
    return fn.__wrapped__ if method == "run" and fn is not None else fn
