"""The service as a test talks to it: the real application in this process, over its HTTP routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from server.app import build
from server.home import admin_token_file
from server.settings import Settings
from tests.builders import ARGUMENTS


@dataclass(frozen=True)
class Answered:
    """An answer: its status, its body, and for a problem its code."""

    status: int
    body: Any

    @property
    def code(self) -> str | None:
        """Return the code of a problem, or None."""
        return self.body.get("code") if isinstance(self.body, dict) else None


class Api:
    """What tests ask of the service."""

    def __init__(self, http: httpx.AsyncClient, app: Any) -> None:
        self.http = http
        self.app = app
        self.worker_id = str(uuid4())

    async def ask(self, method: str, path: str, body: Any = None) -> Answered:
        """Send one request."""
        response = await self.http.request(method, path, json=body)
        return Answered(response.status_code, response.json() if response.content else None)

    async def publish(self, document: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Publish a contract, with its credential made and its capabilities granted; return the tuple."""
        if "credential" in document:
            await self.ask("POST", "/v1/credentials", {"name": document["credential"]})
        for capability in document["capabilities"]:
            await self.ask("POST", "/v1/grants", {"principal": "admin", "capability": capability})
        answer = await self.ask("POST", "/v1/contracts", {"document": document, **more})
        assert answer.status in (200, 201), answer
        return answer.body["reference"]

    async def plan(self, reference: dict[str, Any], **changes: Any) -> Answered:
        """Plan an effect; a change of None leaves a field out."""
        body = {"run": "run-1", "effect": "effect-1", "tool": reference, "arguments": ARGUMENTS} | changes
        return await self.ask("POST", "/v1/effects", {k: v for k, v in body.items() if v is not None})

    def asking(self) -> dict[str, str]:
        """Return what asks for a dispatch, with a fresh nonce."""
        return {"worker_id": self.worker_id, "nonce": str(uuid4())}

    async def dispatched(self, reference: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Plan and dispatch an effect, and return it owned."""
        answer = await self.plan(reference, dispatch=self.asking(), **changes)
        assert answer.status in (200, 201), answer
        assert answer.body["dispatch"]["owned"], answer
        return answer.body

    async def report(self, effect: dict[str, Any], outcome: str, **more: Any) -> Answered:
        """Report on a dispatched effect."""
        body = {"worker_id": self.worker_id, "fence": effect["dispatch"]["fence"], "outcome": outcome}
        return await self.ask("POST", f"/v1/effects/{effect['effect_id']}/outcome", body | more)

    async def show(self, effect: dict[str, Any]) -> dict[str, Any]:
        """Return all that is recorded of an effect."""
        return (await self.ask("GET", f"/v1/effects/{effect['effect_id']}")).body


@asynccontextmanager
async def running(database_url: str, home: Path, **settings: Any) -> AsyncIterator[Api]:
    """Run the application on a database, and leave it stopped."""
    app = build(Settings(database_url=database_url, home=home, **settings))
    async with app.router.lifespan_context(app):
        token = admin_token_file(home).read_text().strip()
        transport = httpx.ASGITransport(app)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://tallystick.test", headers=headers
        ) as http:
            yield Api(http, app)
