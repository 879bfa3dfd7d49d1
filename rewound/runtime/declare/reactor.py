"""`Reactor`: the class a user derives from, and its metaclass."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, dataclass_transform

import msgspec
from msgspec import Struct

from rewound.errors import DefinitionError
from rewound.runtime.declare.annotations import UndefinedNameError
from rewound.runtime.declare.build import plan_of
from rewound.runtime.declare.declared import DeclaredMeta, declaration, shown_fields
from rewound.runtime.declare.duration import Duration, seconds
from rewound.runtime.declare.member import Member
from rewound.runtime.declare.members import members_of
from rewound.runtime.declare.registry import remember
from rewound.runtime.declare.steps import guards_of
from rewound.runtime.declare.wiring import Wired, wire
from rewound.runtime.declare.wording import label

if TYPE_CHECKING:
    # a default for a type variable is 3.13; checkers read it here, at run time it is not needed
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

__all__ = ["Reactor", "ReactorMeta"]

_KEYWORDS = ("name", "version", "timeout", "guards")
_NAME = re.compile(r"[\w.\-/]+")


class _Facts(Struct, frozen=True):
    """A reactor's options, and its steps with every name resolved."""

    name: str
    version: int
    timeout: float | None
    guards: tuple[Any, ...]
    wired: dict[str, Wired]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class ReactorMeta(DeclaredMeta):
    """The metaclass of reactors: reads the class keywords, wires the steps, plans what can be planned."""

    def __new__(
        metacls,
        cls_name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        *,
        name: str | None = None,
        version: int = 1,
        timeout: Duration | None = None,
        guards: Sequence[Any] | None = None,
    ) -> Any:
        """Create a reactor.

        Args:
            cls_name: the class's name.
            bases: its bases.
            namespace: its body.
            name: the stored name. Default: the class's name.
            version: a number from 1, part of the fingerprint. Default 1.
            timeout: seconds (or a `timedelta`) that a run may take, across restarts. Default: that of
                the base class.
            guards: what a run must take before it starts. Default: those of the base class.

        Raises:
            DefinitionError: a name, option or annotation is wrong.
        """
        cls = super().__new__(metacls, cls_name, bases, namespace)
        _no_keyword_in_body(cls, namespace)
        inherited = _inherited(cls)
        limit = None if timeout is None else seconds(timeout, f"{label(cls)}: timeout")
        declaration(cls).reactor = _Facts(
            _checked_name(cls, name),
            _checked_version(cls, version),
            inherited.timeout if inherited and timeout is None else limit,
            guards_of(guards or (), label(cls)),
            wire(members_of(cls)),
        )
        _plan_early(cls)
        return cls


def _no_keyword_in_body(cls: Any, namespace: Mapping[str, Any]) -> None:
    for keyword in _KEYWORDS:
        value: Any = namespace.get(keyword)
        # an annotated default leaves the class body for the struct's own table; a bare value stays
        bare = cls.__dict__.get(keyword) is value and keyword not in namespace.get("__annotations__", {})
        if value is not None and bare and not callable(value) and not isinstance(value, Member | property):
            usage = f"class {label(cls)}(Reactor[...], {keyword}={value!r})"
            raise DefinitionError(f"{label(cls)}.{keyword} is a class keyword: write {usage}.")


def _inherited(cls: type) -> Any:
    facts = [declaration(base).reactor for base in cls.__mro__[1:] if isinstance(base, ReactorMeta)]
    return facts[0] if facts else None


def _checked_name(cls: type, name: Any) -> str:
    if name is None:
        return cls.__name__
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DefinitionError(f"{label(cls)}: name= takes letters, digits and . _ - /, not {name!r}.")
    return name


def _checked_version(cls: type, version: Any) -> int:
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise DefinitionError(f"{label(cls)}: version= takes a whole number from 1, not {version!r}.")
    return version


def _plan_early(cls: Any) -> None:
    """Plan a class that can be spawned, so that its author hears of mistakes at once."""
    facts = declaration(cls).reactor
    if not facts.wired or cls.__parameters__:
        return
    with suppress(UndefinedNameError):  # the first use reads it again
        plan_of(cls)
    remember(facts.name, cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Reactor(Struct, Generic[T_co], metaclass=ReactorMeta):
    """A saga: annotated fields are its inputs, `@step` methods are its steps, `T` is its result.

    An instance is frozen, takes its inputs by keyword, and is not validated until it is spawned. Class
    keywords: `name=` (stored name), `version=`, `timeout=`, `guards=`.

    Attributes:
        returns: the step whose result is the run's. Needed when several steps are read by no other,
            except in a `Reactor[None]`.

    Raises:
        DefinitionError: on creating a subclass: a name stands for nothing or for two things, steps need
            each other, types do not fit. On setting an attribute of an instance.

    Example:
        >>> class Greet(Reactor[str]):
        ...     name: str
        ...
        ...     @step
        ...     async def hello(self) -> str:
        ...         return f"hello {self.name}"
    """

    returns: ClassVar[Any]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={part!r}' for name, part in shown_fields(self))})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return shown_fields(self)
