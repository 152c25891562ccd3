"""The reference provider in this process, and the reverse sweep that reads its listing."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from cli.demo.provider.app import create_app
from cli.demo.provider.books import MEMORY
from cli.demo.provider.faults import Plan
from reconciler.addresses import Hosts
from reconciler.reverse import ReverseSweeper
from reconciler.sources import Fetcher, HttpSource
from tests.api import Api
from tests.builders import ARGUMENTS, a_contract, http_evidence, http_listing
from tests.fixtures import Owner

PORT = 4242
"""Nothing listens there: the reference provider answers in this process."""


class Bookings:
    """The reference provider, and what a worker sends it."""

    def __init__(self, app: Any) -> None:
        self.app = app
        transport = httpx.ASGITransport(app)
        self.http = httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}")
        self.source = HttpSource(
            self.http, Hosts(private=frozenset({f"127.0.0.1:{PORT}"})), lambda *_: None
        )

    async def order(
        self, effect_id: str, key: str, body: Any = ARGUMENTS, *, kind: str = "invoices"
    ) -> None:
        """Book what an effect's worker sends."""
        headers = {"Effect-Id": effect_id, "Idempotency-Key": key}
        await self.http.post(f"/{kind}", json=body, headers=headers)

    async def send(self, effect: dict[str, Any]) -> None:
        """Book what a dispatched effect is to do."""
        assert effect["dispatch"]["owned"]
        await self.order(effect["effect_id"], effect["dispatch"]["idempotency_key"])

    async def booked(self) -> list[str]:
        """Return the effects that were booked, in their order."""
        books = (await self.http.get("/books")).json()
        return [one["effect_id"] for one in books["bookings"]]


@asynccontextmanager
async def keeping_books() -> AsyncGenerator[Bookings]:
    app = create_app(MEMORY, Plan())
    async with app.router.lifespan_context(app):
        bookings = Bookings(app)
        async with bookings.http:
            yield bookings


class Reverse:
    """The reverse sweep, run by hand."""

    def __init__(self, api: Api, owner: Owner, source: Fetcher, *, name: str = "test") -> None:
        state = api.app.state
        self._owner = owner
        self.sweeper = ReverseSweeper(
            state.database.transact, state.keys, source, f"reconciler:{name}", 300
        )

    async def once(self) -> int:
        """Read what is due, for one turn."""
        return await self.sweeper.sweep()

    async def again(self) -> int:
        """Let the next pass be due, and read it whole."""
        await self._owner.rows("UPDATE listing_progress SET due_at = clock_timestamp()")
        pages = 0
        while more := await self.once():
            pages += more
        return pages


def listed(**changes: Any) -> dict[str, Any]:
    """Return the contract of invoices that the provider lists."""
    listing = http_listing(PORT) | changes.pop("listing", {})
    return a_contract(
        evidence=http_evidence(PORT)
        | {"listing": {name: value for name, value in listing.items() if value is not None}},
        **changes,
    )
