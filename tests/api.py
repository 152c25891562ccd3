"""The service as a test talks to it: the real application in this process, over its HTTP routes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from ledger.effect import Event, replay
from server.app import build
from server.home import admin_token_file
from server.settings import Settings
from tests.builders import ARGUMENTS

BASE = "http://tallystick.test"
UNHURRIED: dict[str, Any] = {"rate_per_second": 1e6, "guesses_per_minute": 10**6}
"""No limit to how often: a test asks as fast as it can, and guesses on purpose."""


@dataclass(frozen=True)
class Answered:
    """An answer: its status, its body, and for a problem its code."""

    status: int
    body: Any

    @property
    def code(self) -> str | None:
        """Return the code of a problem, or None."""
        return self.body.get("code") if isinstance(self.body, dict) else None

    @property
    def refusal(self) -> tuple[int, str | None]:
        """Return the status and the code of a problem."""
        return self.status, self.code


class Api:
    """What tests ask of the service."""

    def __init__(self, http: httpx.AsyncClient, app: Any) -> None:
        self.http = http
        self.app = app
        self.worker_id = str(uuid4())

    def speaking_for(self, token: str, *, tells_defects: bool = True) -> "Api":
        """Return the same application as the holder of another token has it.

        Without ``tells_defects`` a defect is the answer that a client gets, and not an exception.
        """
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=tells_defects)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return Api(httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers), self.app)

    @property
    def token(self) -> str:
        """Return the token that this client speaks with."""
        return self.http.headers["Authorization"].removeprefix("Bearer ")

    async def ask(self, method: str, path: str, body: Any = None) -> Answered:
        """Send one request."""
        response = await self.http.request(method, path, json=body)
        return Answered(response.status_code, response.json() if response.content else None)

    async def credential(self, name: str) -> None:
        """Make a credential slot, unless it is there."""
        await self.ask("POST", "/v1/credentials", {"name": name})

    async def rotate(self, name: str) -> None:
        """Raise the version of a credential."""
        answer = await self.ask("POST", f"/v1/credentials/{name}/rotate", {})
        assert answer.status == 200, answer

    async def grant(self, *capabilities: str) -> None:
        """Grant capabilities to the principal of this client."""
        principal = (await self.ask("GET", "/v1/whoami")).body["principal"]
        for capability in capabilities:
            body = {"principal": principal, "capability": capability}
            assert (await self.ask("POST", "/v1/grants", body)).status in (200, 201)

    async def submit(self, document: dict[str, Any], **more: Any) -> Answered:
        """Publish a contract and nothing else."""
        return await self.ask("POST", "/v1/contracts", {"document": document, **more})

    async def publish(self, document: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Publish a contract, its credential made, its capabilities granted; return its tuple."""
        if "credential" in document:
            await self.credential(document["credential"])
        await self.grant(*document["capabilities"])
        answer = await self.submit(document, **more)
        assert answer.status in (200, 201), answer
        return answer.body["reference"]

    async def plan(self, reference: dict[str, Any], **changes: Any) -> Answered:
        """Plan an effect; a change of None leaves a field out."""
        body = {"run": "run-1", "effect": "effect-1", "tool": reference, "arguments": ARGUMENTS}
        body |= changes
        return await self.ask(
            "POST", "/v1/effects", {k: v for k, v in body.items() if v is not None}
        )

    def asking(self) -> dict[str, str]:
        """Return what asks for a dispatch, with a fresh nonce."""
        return {"worker_id": self.worker_id, "nonce": str(uuid4())}

    async def dispatched(self, reference: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Plan and dispatch an effect, and return it owned."""
        answer = await self.plan(reference, dispatch=self.asking(), **changes)
        assert answer.status in (200, 201), answer
        assert answer.body["dispatch"]["owned"], answer
        return answer.body

    async def dispatch(self, effect: dict[str, Any], **changes: Any) -> Answered:
        """Ask to send an effect that is recorded."""
        body = self.asking() | changes
        return await self.ask("POST", f"/v1/effects/{effect['effect_id']}/dispatch", body)

    async def report(self, effect: dict[str, Any], outcome: str, **more: Any) -> Answered:
        """Report on a dispatched effect."""
        body = {"worker_id": self.worker_id, "fence": effect["dispatch"]["fence"]}
        body |= {"outcome": outcome} | more
        return await self.ask("POST", f"/v1/effects/{effect['effect_id']}/outcome", body)

    async def cancel(self, effect: dict[str, Any]) -> Answered:
        """Give an effect up."""
        body = {"reason": "not wanted any more"}
        return await self.ask("POST", f"/v1/effects/{effect['effect_id']}/cancel", body)

    async def resolve(self, effect: dict[str, Any], to: str, **changes: Any) -> Answered:
        """Settle a quarantined effect by the word of one person."""
        body = {"to": to, "reason": "looked it up", "evidence": "ticket 7"} | changes
        return await self.ask("POST", f"/v1/effects/{effect['effect_id']}/resolve", body)

    async def tell(self, effect: dict[str, Any], answer: str, **changes: Any) -> Answered:
        """Say what is known of an effect, as a person does."""
        body = {"answer": answer, "observed_at": effect["planned_at"], "detail": "ticket 7"}
        path = f"/v1/effects/{effect['effect_id']}/evidence"
        return await self.ask("POST", path, body | changes)

    async def show(self, effect: dict[str, Any]) -> dict[str, Any]:
        """Return all that is recorded of an effect."""
        return (await self.ask("GET", f"/v1/effects/{effect['effect_id']}")).body

    async def state(self, effect: dict[str, Any]) -> str:
        """Return where an effect is."""
        return (await self.show(effect))["state"]

    async def retire(self, reference: dict[str, Any]) -> Answered:
        """Close a version, and retire it if nothing refers to it."""
        path = f"/v1/rollouts/{reference['name']}/{reference['version']}/retire"
        return await self.ask("POST", path, {"reason": "replaced"})

    async def rollback(self, reference: dict[str, Any]) -> Answered:
        """Reopen a version that was closed."""
        path = f"/v1/rollouts/{reference['name']}/{reference['version']}/rollback"
        return await self.ask("POST", path, {"reason": "still needed"})

    async def effects(self, query: str = "limit=500") -> list[dict[str, Any]]:
        """Return every effect that matches a query, over all pages."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            page = (await self.ask("GET", f"/v1/effects?{query}{after}")).body
            found += page["effects"]
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"

    async def check_histories(self) -> None:
        """Hold every effect to its history: it replays to the state, without a gap."""
        for effect in await self.effects():
            shown = await self.show(effect)
            known = {one: shown[one] for one in effect}
            assert known == effect
            state, fence, _ = replay([_event(event) for event in shown["events"]])
            assert (state, fence) == (shown["state"], shown["fence"]), shown
            assert fence == len(shown["events"]) - 1
            assert (shown["outcome"] is not None) == (not state.is_open)


def _event(event: dict[str, Any]) -> Event:
    return Event(
        fence=event["fence"],
        transition=event["transition"],
        from_state=event["from_state"],
        to_state=event["to_state"],
        attempt=event["attempt"],
        actor=event["actor"],
        reason=event["reason"],
        at=moment(event["at"]),
    )


def moment(text: str) -> datetime:
    """Read a time as the wire has it."""
    return datetime.fromisoformat(text).astimezone(UTC)


@asynccontextmanager
async def running(database_url: str | None, home: Path, **settings: Any) -> AsyncGenerator[Api]:
    """Run the application on a database, and leave it stopped."""
    app = build(Settings(database_url=database_url, home=home, **(UNHURRIED | settings)))
    async with app.router.lifespan_context(app):
        token = admin_token_file(home).read_text().strip()
        transport = httpx.ASGITransport(app)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as http:
            yield Api(http, app)
