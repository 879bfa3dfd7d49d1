"""Values to msgpack and back: what can be stored, and what a reader gets.

A reader gets what the annotation says. Where the annotation says nothing (`Any`), it gets what was
returned, or the value is refused by name: a `Decimal` must not silently become a `str`. `datetime`s keep
their instant and come back in UTC; pydantic models pass through `model_dump` and `model_validate`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from rewound.errors import DefinitionError, EncodeError, PayloadError
from rewound.runtime.declare.losses import Offence, offence
from rewound.runtime.declare.mismatch import text

__all__ = ["ModelError", "OutputError", "decode_any", "decoder_of", "encode", "is_loose", "load_model"]


class OutputError(PayloadError):
    """A step returned what its return annotation does not allow (it started, so it is compensated)."""


class ModelError(ValueError):
    """A model does not admit the data; `.faults` maps a dotted path inside it to a message."""

    def __init__(self, faults: dict[str, str]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{path}: {message}" for path, message in faults.items()))


def _dump(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise NotImplementedError(f"a {text(type(value))} cannot be stored")
    return dump(by_alias=True, round_trip=True)


def load_model(kind: Any, raw: Any) -> Any:
    """Make a model from plain data, as a msgspec `dec_hook`."""
    # only `object` and models get here: anything else was refused when the plan was made
    if kind is object:
        return raw
    try:
        return kind.model_validate(raw)
    except ValueError as error:
        if not hasattr(error, "errors"):
            raise
        # pydantic's own text quotes the values, secret ones too; it must not be the cause either
        listed: Any = error
        faults = {".".join(map(str, each["loc"])): each["msg"] for each in listed.errors(include_input=False)}
    raise ModelError(faults)


decode_any = msgspec.msgpack.Decoder().decode
"""Read msgpack as plain data."""

_ENCODER = msgspec.msgpack.Encoder(enc_hook=_dump)


def encode(value: Any, subject: str) -> bytes:
    """Encode a value.

    Args:
        value: the value.
        subject: what an error message begins with, such as `Checkout.charge: result`.

    Raises:
        EncodeError: a part of it cannot be stored; the message has its path and type.
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError as error:
        raise EncodeError(f"{subject} is nested too deeply to be stored, or contains itself.") from error
    except Exception as error:  # whatever the value's own code raises while it is read
        raise _refused(subject, offence(value, _ENCODER.encode) or Offence("", value), error) from error


def _refused(subject: str, found: Offence, error: Exception) -> EncodeError:
    why = f" ({error})" if isinstance(error, OverflowError | UnicodeEncodeError) else ""
    return EncodeError(
        f"{subject}{found.path} is a {text(type(found.value))} that cannot be stored{why}; "
        "return built-in values, structs, dataclasses or pydantic models."
    )


def decoder_of(annotation: Any, subject: str) -> Callable[[bytes], Any]:
    """Make the function that reads values of one type.

    Args:
        annotation: the type.
        subject: whose it is, for an error message.

    Raises:
        DefinitionError: values of this type cannot be stored.
    """
    if annotation is object:
        annotation = Any
    try:
        unknown = next((node for node in _nodes(annotation) if _is_foreign(node)), None)
        decode = msgspec.msgpack.Decoder(annotation, dec_hook=load_model).decode
    except NameError as error:
        raise DefinitionError(
            f"{error.name!r} in {text(annotation)}, of {subject}, is not defined."
        ) from error
    except TypeError as error:
        raise DefinitionError(f"{subject}: {text(annotation)} cannot be stored: {error}") from error
    if isinstance(unknown, inspect.CustomType):
        raise DefinitionError(
            f"{subject}: a {text(unknown.cls)} cannot be stored; use built-in values, structs, dataclasses "
            "or pydantic models."
        )
    return decode


def is_loose(annotation: Any) -> bool:
    """Tell whether a type says nothing about some part of its values, so that losses must be looked for."""
    return any(
        isinstance(node, inspect.AnyType) or (isinstance(node, inspect.CustomType) and node.cls is object)
        for node in _nodes(annotation)
    )


def _is_foreign(node: Any) -> bool:
    return isinstance(node, inspect.CustomType) and not (
        node.cls is object or hasattr(node.cls, "model_validate")
    )


def _nodes(annotation: Any) -> Iterator[Any]:
    """Walk everything that a type is made of, each once: struct types may contain themselves."""
    waiting: list[Any] = [inspect.type_info(annotation)]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, inspect.Type):
            yield node
        parts = [getattr(node, name) for name in node.__struct_fields__]
        several = [each for part in parts for each in _several(part)]
        waiting += [each for each in several if isinstance(each, inspect.Type | inspect.Field)]


def _several(part: Any) -> tuple[Any, ...]:
    return part if part.__class__ is tuple else (part,)
