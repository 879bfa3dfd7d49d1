"""What marks a value: `Skipped` for a result that was already there, `Redact` for a secret."""

from typing import Generic, TypeVar

from msgspec import Struct

__all__ = ["Redact", "Skipped"]

T_co = TypeVar("T_co", covariant=True)


class Skipped(Struct, Generic[T_co], frozen=True):
    """Return from a step that had nothing to do: the value flows on, the step is never undone (rule S7).

    Args:
        value: what the readers of the step get.

    Example:
        >>> class Signup(Reactor[str]):
        ...     email: str
        ...
        ...     @step
        ...     async def account(self) -> str | Skipped[str]:
        ...         return Skipped("it was there")
    """

    value: T_co


class Redact:
    """Mark an input as a secret: it is shown as `[redacted]` in every failure, log, trace and repr.

    It is stored plainly, unless a payload codec encrypts it.

    Example:
        >>> class Login(Reactor[None]):
        ...     password: Annotated[str, Redact]
        >>> Login(password="hunter2")
        Login(password='[redacted]')
    """
