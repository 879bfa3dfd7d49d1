"""The checkout's side of the payment service: plain HTTP from the standard library, in a worker thread."""

from http.client import HTTPConnection, HTTPException
from typing import Any

import anyio.to_thread
import msgspec

__all__ = ["Declined", "Payments", "ServiceError"]


class Declined(Exception):  # noqa: N818  named by what happened, as the library's own errors are
    """The card was declined; asking again is no use."""


class ServiceError(Exception):
    """The payment service did not do what it was asked; asking again may help."""


class Payments:
    """A client of the payment service.

    Args:
        port: the service's, on the loopback interface.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    async def charge(self, order: str, card: str, cents: int, *, key: str) -> None:
        """Charge a card. The same key never charges twice.

        Raises:
            Declined: by the card's bank.
            ServiceError: anything else went wrong.
        """
        await self._post("/charges", key, {"order": order, "card": card, "cents": cents})

    async def refund(self, order: str, *, key: str) -> int:
        """Give back what an order was charged; return the cents."""
        answer = await self._post("/refunds", key, {"order": order})
        return int(answer["cents"])

    async def void(self, order: str, *, key: str) -> int:
        """Call an order's payment off, whether or not it was charged; return the cents given back."""
        answer = await self._post("/voids", key, {"order": order})
        return int(answer["cents"])

    async def _post(self, path: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        # A step that times out leaves its thread behind rather than wait for it: the key makes that safe.
        return await anyio.to_thread.run_sync(self._exchange, path, key, body, abandon_on_cancel=True)

    def _exchange(self, path: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("POST", path, msgspec.json.encode(body), {"Idempotency-Key": key})
            response = connection.getresponse()
            answer: dict[str, Any] = msgspec.json.decode(response.read())
        except (OSError, HTTPException) as error:
            raise ServiceError(f"the payment service cannot be reached: {error}") from error
        finally:
            connection.close()
        if response.status == 402:  # noqa: PLR2004  payment required
            raise Declined("card declined")
        if response.status != 201:  # noqa: PLR2004  created
            raise ServiceError(f"the payment service answered {response.status}: {answer['error']}")
        return answer
