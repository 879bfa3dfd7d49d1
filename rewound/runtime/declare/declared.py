"""What reactors and class steps have in common: frozen, keyword-only structs that remember their caller.

The metaclass adds to `msgspec.StructMeta`: `frozen` and `kw_only` for every subclass (msgspec inherits only
the first), a class body that notices a name given twice, and the local names around the class
statement, which quoted annotations may need later.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, cast

import msgspec
from msgspec import StructMeta

from rewound.errors import DefinitionError
from rewound.runtime.declare.annotations import bindings, class_hints, substitute
from rewound.runtime.declare.codec import decoder_of, is_loose
from rewound.runtime.declare.member import Member
from rewound.runtime.declare.mismatch import text
from rewound.runtime.declare.redact import MASK, masked
from rewound.runtime.declare.wording import label

__all__ = [
    "Declaration",
    "DeclaredMeta",
    "FieldPlan",
    "FrozenInstanceError",
    "declaration",
    "defaults_of",
    "fields_of",
    "names_for",
]

_PACKAGE = __name__.rpartition(".")[0]


class FrozenInstanceError(DefinitionError, AttributeError):
    """Something tried to change a reactor; also an `AttributeError`, as for any frozen object."""


class FieldPlan(msgspec.Struct, frozen=True):
    """One input: its type, and how a value is checked.

    Args:
        name: the input.
        type: its annotation.
        text: the annotation in words, for comparing versions.
        required: whether it has no default.
        decode: reads msgpack and refuses what the annotation does not allow.
        loose: whether the annotation leaves types open, so that values are searched for losses.
        default: gives the default; only if not required.
    """

    name: str
    type: Any
    text: str
    required: bool
    decode: Callable[[bytes], Any]
    loose: bool
    default: Callable[[], Any]


class _Probe(msgspec.Struct):
    items: list[Any] = []


# msgspec keeps a default factory in a wrapper whose class it does not export
_FACTORY = cast("Any", type(_Probe.__struct_defaults__[0]))


class Declaration:
    """What is kept beside a reactor or class step; filled in as it is worked out."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)  # visible around the class statement
        self.types: dict[str, Any] | None = None  # of the class's own fields
        self.fields: tuple[FieldPlan, ...] | None = None  # own and inherited
        self.reactor: Any = None  # a reactor's options and wiring
        self.plan: Any = None


class _Body(dict[str, Any]):
    """A class body that refuses to lose a step or handler to a second definition of its name."""

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self and (isinstance(value, Member) or isinstance(self[name], Member)):
            raise DefinitionError(f"{self.subject} defines {name!r} twice; give each a name of its own.")
        super().__setitem__(name, value)


class DeclaredMeta(StructMeta):
    """The metaclass of everything a user declares as a struct of inputs."""

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **keywords: Any) -> Any:
        """Start a class body that notices duplicates."""
        return _Body(name)

    def __new__(metacls, cls_name: str, bases: tuple[type, ...], namespace: dict[str, Any], /) -> Any:
        """Create the class, frozen and keyword-only, and remember the names around it."""
        _one_base_with_fields(cls_name, bases)
        try:
            cls = super().__new__(metacls, cls_name, bases, dict(namespace), frozen=True, kw_only=True)
        except TypeError as error:  # what msgspec refuses, such as a mutable default
            raise DefinitionError(f"{cls_name}: {error}") from error
        # msgspec puts its own refusal into every frozen class; this one says what to do
        type.__setattr__(cls, "__setattr__", _refuse_setting)
        type.__setattr__(cls, "__rewound__", Declaration(_caller_names()))
        _no_hidden_fields(cls, namespace)
        return cls


def _refuse_setting(self: Any, name: str, value: object) -> None:  # noqa: ARG001
    subject = label(self.__class__)
    raise FrozenInstanceError(
        f"{subject} is frozen: a step cannot set self.{name}; return the value instead."
    )


def _one_base_with_fields(cls_name: str, bases: tuple[type, ...]) -> None:
    if sum(bool(_fields(base)) for base in bases) > 1:
        raise DefinitionError(f"{cls_name} has two reactor bases; put shared steps in a plain mixin.")


def _fields(cls: Any) -> tuple[str, ...]:
    return cls.__struct_fields__ if isinstance(cls, StructMeta) else ()


def _no_hidden_fields(cls: Any, namespace: Mapping[str, Any]) -> None:
    inherited = {name for base in cls.__mro__[1:] for name in _fields(base)}
    for name, value in namespace.items():
        # an annotated default leaves the class body for the struct's own table; a bare value stays
        bare = name in inherited and cls.__dict__.get(name) is value
        if bare and not isinstance(value, Member):
            raise DefinitionError(
                f"{label(cls)}.{name} hides the input {name!r}; annotate it to give it a default."
            )


def _caller_names() -> dict[str, Any]:
    """Copy the local names visible where the class statement stands."""
    frames = [dict(frame.f_locals) for frame in _enclosing(inspect.currentframe())]
    return {name: value for names in reversed(frames) for name, value in names.items()}


def _enclosing(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
        frame = frame.f_back
    # class bodies around it run at once, so the frames behind them are the enclosing scopes
    while frame is not None and frame.f_locals is not frame.f_globals:
        yield frame
        if "__qualname__" not in frame.f_locals:
            return
        frame = frame.f_back


def declaration(cls: type) -> Declaration:
    """Get what is kept beside a reactor or class step."""
    kept: Declaration = vars(cls)["__rewound__"]
    return kept


def names_for(cls: type) -> dict[str, Any]:
    """Collect what a quoted annotation in a class may name besides its module's names."""
    names: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        own = vars(each)
        kept = own.get("__rewound__")
        names |= kept.names if isinstance(kept, Declaration) else {}
        names |= {parameter.__name__: parameter for parameter in own.get("__type_params__", ())}
        names |= {name: value for name, value in own.items() if isinstance(value, type)}
    return names | {cls.__name__: cls}


def fields_of(cls: Any) -> tuple[FieldPlan, ...]:
    """List the inputs of a reactor or class step, in order, base classes first.

    Raises:
        UndefinedNameError: an annotation names what does not exist (yet).
        DefinitionError: an annotation cannot be read, or its values cannot be stored.
    """
    kept = declaration(cls)
    if kept.fields is None:
        types = _field_types(cls)
        defaults = defaults_of(cls)
        kept.fields = tuple(
            _field(cls, name, types[name], defaults.get(name, msgspec.NODEFAULT))
            for name in cls.__struct_fields__
        )
    return kept.fields


def defaults_of(cls: Any) -> dict[str, Any]:
    """Map the inputs that have a default to it (or to msgspec's wrapper of its factory)."""
    defaults = cls.__struct_defaults__
    names = cls.__struct_fields__[len(cls.__struct_fields__) - len(defaults) :]
    return {
        name: value for name, value in zip(names, defaults, strict=True) if value is not msgspec.NODEFAULT
    }


def shown_fields(instance: Any) -> list[tuple[str, Any]]:
    """List an instance's inputs with secrets masked; all of them, if the annotations cannot be read yet."""
    names = instance.__struct_fields__
    try:
        fields = fields_of(type(instance))
    except DefinitionError:
        return [(name, MASK) for name in names]
    return [(field.name, masked(getattr(instance, field.name), field.type)) for field in fields]


def _field(cls: type, name: str, annotation: Any, default: Any) -> FieldPlan:
    decode = decoder_of(annotation, f"{label(cls)}.{name}")
    required = default is msgspec.NODEFAULT
    factory = default.factory if isinstance(default, _FACTORY) else lambda: default
    return FieldPlan(name, annotation, text(annotation), required, decode, is_loose(annotation), factory)


def _field_types(cls: Any) -> dict[str, Any]:
    bound = bindings(cls)
    types: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        if isinstance(each, StructMeta):
            own = _own_types(each, cls.__struct_fields__)
            types |= {name: substitute(kind, bound.get(each, {})) for name, kind in own.items()}
    return types


def _own_types(cls: type, wanted: tuple[str, ...]) -> dict[str, Any]:
    kept = vars(cls).get("__rewound__")
    if not isinstance(kept, Declaration):
        return class_hints(cls, wanted, {})
    if kept.types is None:
        kept.types = class_hints(cls, wanted, names_for(cls))
    return kept.types


def forget_names(cls: type) -> None:
    """Let go of the caller's local names once every annotation has been read."""
    declaration(cls).names = {}
