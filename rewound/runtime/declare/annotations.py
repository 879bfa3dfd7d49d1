"""Reading annotations at run time: names that are not defined yet, locals, generic bases."""

import inspect
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from rewound.errors import DefinitionError
from rewound.runtime.declare.wording import label

__all__ = ["UndefinedNameError", "argument_of", "bindings", "class_hints", "function_hints", "substitute"]


class UndefinedNameError(DefinitionError):
    """An annotation names what does not exist yet; reading it again later may succeed."""


@contextmanager
def _explained(subject: str) -> Generator[None]:
    try:
        yield
    except NameError as error:
        raise UndefinedNameError(
            f"{error.name!r} in {subject} is not defined yet (or is imported only under TYPE_CHECKING)."
        ) from error
    except Exception as error:
        raise DefinitionError(f"{subject} has an annotation that cannot be read: {error}") from error


def _evaluate(raw: Mapping[str, Any], globalns: dict[str, Any], localns: Mapping[str, Any]) -> dict[str, Any]:
    def holder() -> None: ...

    # get_type_hints evaluates strings, nested ones too, the same way on every version of Python;
    # handing it a function instead of the class spares it the base classes
    holder.__annotations__ = dict(raw)
    return get_type_hints(holder, globalns, dict(localns), include_extras=True)


def function_hints(fn: Callable[..., Any], subject: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate a function's annotations, `return` among them.

    Args:
        fn: the function; a wrapper is looked through.
        subject: what an error message names, such as `Checkout.charge`.
        names: what is visible besides the function's module.

    Raises:
        UndefinedNameError: a name does not exist (yet).
        DefinitionError: an annotation makes no sense.
    """
    bare = inspect.unwrap(fn)
    with _explained(subject):
        return _evaluate(inspect.get_annotations(bare), getattr(bare, "__globals__", {}), names)


def class_hints(cls: type, wanted: tuple[str, ...], names: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate the annotations that a class itself (not a base) has for the wanted attributes.

    Raises:
        UndefinedNameError: a name does not exist (yet).
        DefinitionError: an annotation makes no sense.
    """
    with _explained(label(cls)):
        raw = inspect.get_annotations(cls)
        return _evaluate({name: raw[name] for name in wanted if name in raw}, _globals(cls), names)


def _globals(cls: type) -> dict[str, Any]:
    return dict(vars(sys.modules.get(cls.__module__, object)))


def bindings(cls: type) -> dict[type, dict[Any, Any]]:
    """Map each generic base of a class to what the class puts for the base's type variables."""
    found: dict[type, dict[Any, Any]] = {}

    def walk(each: type, bound: Mapping[Any, Any]) -> None:
        for base in vars(each).get("__orig_bases__", each.__bases__):
            origin = get_origin(base) or base
            if origin is Generic or origin in found:
                continue
            arguments = tuple(substitute(argument, bound) for argument in get_args(base))
            found[origin] = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
            walk(origin, found[origin])

    walk(cls, {})
    return found


def substitute(annotation: Any, bound: Mapping[Any, Any]) -> Any:
    """Put types for the type variables in an annotation; unbound ones become `Any`."""
    if isinstance(annotation, TypeVar):
        return bound.get(annotation, Any)
    # a bare generic class has parameters, too, but stands for itself
    open_ones: Any = () if inspect.isclass(annotation) else getattr(annotation, "__parameters__", ())
    if not open_ones:
        return annotation
    generic: Any = annotation
    return generic[tuple(bound.get(each, Any) for each in open_ones)]


def argument_of(cls: type, base: type, names: Mapping[str, Any]) -> Any:
    """Find `T` where a class derives from `base[T]`, directly or not; `Any` if it does not say.

    Raises:
        UndefinedNameError: it is written as a string and names what does not exist (yet).
    """
    bound = bindings(cls).get(base, {})
    argument = next(iter(bound.values()), Any)
    with _explained(label(cls)):
        return _evaluate({"argument": argument}, _globals(cls), names)["argument"]
