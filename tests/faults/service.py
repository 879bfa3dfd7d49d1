"""A web service that runs orders: `uvicorn tests.faults.service:app`, its store in REWOUND_STORE."""

import os

import anyio
from fastapi import FastAPI, Request

from rewound import Reactor, Runtime, step


class Order(Reactor[str]):
    """Three steps that take a tenth of a second each."""

    number: str

    @step
    async def reserve(self) -> str:
        """Be slow enough that the client is gone."""
        await anyio.sleep(0.1)
        return self.number

    @step
    async def charge(self, reserve: str) -> str:
        """Go on without it."""
        await anyio.sleep(0.1)
        return reserve

    @step
    async def ship(self, charge: str) -> str:
        """Finish."""
        await anyio.sleep(0.1)
        return charge


runtime = Runtime(os.environ["REWOUND_STORE"], reactors=[Order])
app = FastAPI(lifespan=runtime.lifespan)


@app.post("/orders/{number}")
async def order(number: str, request: Request) -> dict[str, str]:
    """Run an order and wait for its end."""
    served: Runtime = request.state.rewound
    return {"result": await served.run(Order(number=number), key=number)}
