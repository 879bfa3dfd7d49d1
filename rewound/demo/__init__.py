"""The demo: a file of orders, a payment service that misbehaves, a worker that is killed half-way.

`rewound demo` runs it. Read `checkout.py` first: it is the saga; the rest is the world around it. Nothing
is imported here, so that each of the demo's processes loads only what it needs.
"""
