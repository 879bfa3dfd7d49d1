"""The demo: a file of orders, a payment service that misbehaves, a worker that is killed half-way.

Then a file of 2,000 fees with a bad row near its end, which is charged and taken back. `rewound demo` runs
both. Read `checkout.py` first, then `billing.py`: these are the sagas; the rest is the world around them.
Nothing is imported here, so that each of the demo's processes loads only what it needs.
"""
