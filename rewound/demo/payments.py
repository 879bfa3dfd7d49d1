"""A payment service to run the demo against: `python -m rewound.demo.payments LEDGER`.

It listens on the loopback interface only, says its port on its first line of output and ends when its
standard input does, so it never outlives the demo. It honours `Idempotency-Key`, and knows some cards
that behave as cards do:

| card | what happens |
| --- | --- |
| 4000000000000002 | declined |
| 4000000000000119 | the first request gets a 503, the next one works |
| 4000000000006975 | the first request is booked, but the answer comes too late |
| 4000000000009987 | every request is booked, and no answer comes in time |
"""

import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from rewound.demo.ledger import Ledger, Voided

__all__ = ["DECLINED", "FLAKY", "SLOW", "UNREACHABLE", "Bank", "Request", "serve"]

DECLINED: Final = "4000000000000002"
FLAKY: Final = "4000000000000119"
SLOW: Final = "4000000000006975"
UNREACHABLE: Final = "4000000000009987"
LATE: Final = 2.0  # seconds that a late answer takes: longer than the client waits
PATHS: Final = {"/charges": "charge", "/refunds": "refund", "/voids": "void"}


class Request(Struct):
    """The body of a request; `card` and `cents` matter to charges."""

    order: str
    card: str = ""
    cents: int = 0


class Bank:
    """What the service decides, apart from HTTP.

    Args:
        ledger: where money is booked.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen: set[str] = set()

    def charge(self, key: str, request: Request) -> tuple[int, dict[str, Any], float]:
        """Charge a card; return the HTTP status, the answer and how many seconds late it comes."""
        first = key not in self._seen
        self._seen.add(key)
        if request.card == DECLINED:
            return 402, {"error": "card_declined"}, 0.0
        if request.card == FLAKY and first:
            return 503, {"error": "try_again"}, 0.0
        try:
            entry = self._ledger.charge(key, request.order, request.cents)
        except Voided as error:
            return 409, {"error": str(error)}, 0.0
        late = request.card == UNREACHABLE or (request.card == SLOW and first)
        return 201, msgspec.to_builtins(entry), LATE if late else 0.0

    def refund(self, key: str, request: Request) -> tuple[int, dict[str, Any], float]:
        """Give an order's money back."""
        return 201, msgspec.to_builtins(self._ledger.refund(key, request.order)), 0.0

    def void(self, key: str, request: Request) -> tuple[int, dict[str, Any], float]:
        """Give an order's money back, and take no more for it."""
        return 201, msgspec.to_builtins(self._ledger.void(key, request.order)), 0.0


def handler(bank: Bank, latency: float) -> type[BaseHTTPRequestHandler]:
    """Return a request handler for this bank that takes `latency` seconds for every answer."""

    class Handler(BaseHTTPRequestHandler):
        """One request: JSON in, JSON out."""

        def do_POST(self) -> None:
            """Answer `/charges`, `/refunds` and `/voids`."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer, late = self._decide(body)
            time.sleep(latency + late)
            with suppress(ConnectionError):  # a client that waited too long is gone
                self._send(status, msgspec.json.encode(answer))

        def _decide(self, body: bytes) -> tuple[int, dict[str, Any], float]:
            key = self.headers.get("Idempotency-Key")
            if not key or self.path not in PATHS:
                return 400, {"error": f"POST one of {', '.join(PATHS)} with an Idempotency-Key"}, 0.0
            try:
                request = msgspec.json.decode(body, type=Request)
            except msgspec.MsgspecError as error:
                return 400, {"error": str(error)}, 0.0
            verb = getattr(bank, PATHS[self.path])
            decided: tuple[int, dict[str, Any], float] = verb(key, request)
            return decided

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class names it so
            """Keep quiet: the demo tells what happened."""

    return Handler


def serve(ledger: Path, latency: float = 0.2) -> None:
    """Serve on a free loopback port until standard input ends.

    Args:
        ledger: the file to book in.
        latency: seconds that every answer takes.
    """
    book = Ledger(ledger)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(Bank(book), latency)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.shutdown()
    book.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
