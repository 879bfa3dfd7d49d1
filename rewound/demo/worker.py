"""A worker of the demo: `python -m rewound.demo.worker JOB`, with a `Job` in JSON.

It asks for every order of the file to be checked out, then works until its standard input ends. Asking
again after a crash is safe: an order that is known by its key is not begun twice.
"""

import logging
import sys
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from rewound import Runtime
from rewound.demo.checkout import Checkout, Shop
from rewound.demo.client import Payments
from rewound.demo.orders import read_orders
from rewound.demo.stock import Stock

__all__ = ["LEASE", "RETENTION", "Job", "key_of", "work"]

LEASE: Final = 2.0  # seconds; short, so that the demo does not wait long for a dead worker's runs
RETENTION: Final = 3600.0  # seconds; for stores that outlive the demo
CONCURRENCY: Final = 4  # bodies in flight; few, so that one sees the work going on


class Job(Struct, frozen=True):
    """What a worker is told.

    Args:
        store: the URL of the storage.
        file: the orders.
        orders: how many of them.
        batch: this run of the demo, so that one store serves several.
        port: the payment service's.
        stock: the warehouse's file.
    """

    store: str
    file: str
    orders: int
    batch: str
    port: int
    stock: str


def key_of(batch: str, order: str) -> str:
    """Return the idempotency key of an order's checkout."""
    return f"{batch}/{order}"


async def work(job: Job) -> None:
    """Check every order out, and stay until standard input ends."""
    shop: Shop = {"stock": Stock(Path(job.stock)), "payments": Payments(job.port)}
    runtime = Runtime(
        job.store, reactors=[Checkout], state=shop, concurrency=CONCURRENCY, lease=LEASE, retention=RETENTION
    )
    async with runtime:
        for order in read_orders(Path(job.file))[: job.orders]:
            await runtime.spawn(Checkout(order=order), key=key_of(job.batch, order.order))
        await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    anyio.run(work, msgspec.json.decode(sys.argv[1], type=Job))
