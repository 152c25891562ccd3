"""What the chapters work with, and the few things that several of them do."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx

from cli.connection import Api, JsonObject
from cli.demo.books import Line
from cli.demo.processes import POLL_SECONDS, STEP_SECONDS_MAX, Services
from cli.demo.story import Story
from cli.demo.tools import reference_in, request_for
from tallystick import AsyncClient, AsyncEffect, ToolReference
from tallystick.errors import Refusal

INVOICE: Final = "billing.send_invoice"
TRANSFER: Final = "payments.transfer"


@dataclass(frozen=True, slots=True)
class Stage:
    """The services, three ways to them, and what one chapter leaves for another.

    Attributes:
        registry: The service's API, for what an operator does.
        client: The library, for what an agent's runtime does.
        provider: The provider's own HTTP.
        left: Ids of effects by the name that their chapter gave them.
        lines: The provider's books beside the ledger, once they are compared.
    """

    story: Story
    services: Services
    registry: Api
    client: AsyncClient
    provider: httpx.AsyncClient
    left: dict[str, str] = field(default_factory=dict[str, str])
    lines: list[Line] = field(default_factory=list[Line])

    def check(self, name: str, *, ok: bool, answer: str) -> None:
        """Record a check and tell it."""
        self.story.check(name, ok=ok, answer=answer)

    async def refused(self, name: str, code: str, asked: Awaitable[object]) -> JsonObject:
        """Check that a request is refused with exactly this code; return the refusal's facts."""
        try:
            await asked
        except Refusal as refusal:
            told = f"{refusal.code}: {refusal.detail}"
            self.check(name, ok=refusal.code == code, answer=told)
            return refusal.facts
        self.check(name, ok=False, answer=f"It was accepted, where {code} was expected.")
        return {}

    async def reference(self, tool: str, version: str = "1.0") -> ToolReference:
        """Return the tuple of a published version, as a runtime takes it over when it is built."""
        return (await self.client.contract(tool, version)).reference

    async def send(
        self, reference: ToolReference, arguments: JsonObject, *, run: str, effect: str
    ) -> str:
        """Run an effect as an agent's runtime does; return its id.

        Raises EffectNotOwned or a refusal, and then nothing was sent.
        """
        async with self.client.effect(reference, arguments, run=run, effect=effect) as attempt:
            await self._deliver(attempt, reference.name)
        return attempt.effect_id

    async def send_planned(self, effect_id: str) -> None:
        """Run an effect that was planned. Raises as `send` does."""
        effect = await self.show(effect_id)
        async with self.client.dispatch(effect_id) as attempt:
            await self._deliver(attempt, effect["tool"])

    async def plan(
        self, reference: ToolReference, arguments: JsonObject, *, run: str, effect: str
    ) -> str:
        """Record an effect for a worker to run; return its id."""
        return (await self.client.plan(reference, arguments, run=run, effect=effect)).effect_id

    async def take(self, effect_id: str, reference: ToolReference | None = None) -> None:
        """Ask to run a planned effect, to see that it is not given; given, it is not sent.

        Raises EffectNotOwned or a refusal.
        """
        async with self.client.dispatch(effect_id, reference) as attempt:
            await attempt.not_sent("The demo only asked.")

    async def show(self, effect_id: str) -> JsonObject:
        """Return all that the ledger has of an effect."""
        return await self.registry.get("effects", effect_id)

    async def requests_for(self, effect_id: str) -> int:
        """Return how many requests the provider got for an effect."""
        books = (await self.provider.get("/books")).raise_for_status().json()
        return sum(request["effect_id"] == effect_id for request in books["requests"])

    async def until(self, effect_id: str, *states: str) -> JsonObject:
        """Return an effect once it is in one of these states, or after the longest wait."""
        async for _ in self.moments():
            effect = await self.show(effect_id)
            if effect["state"] in states:
                return effect
        return await self.show(effect_id)

    async def moments(self) -> AsyncGenerator[None]:
        """Yield again and again, a moment apart, for as long as anything may take."""
        deadline = time.monotonic() + STEP_SECONDS_MAX
        while time.monotonic() < deadline:
            self.services.check_alive()
            yield
            await asyncio.sleep(POLL_SECONDS)

    @asynccontextmanager
    async def as_operator(self, principal: str) -> AsyncGenerator[Api]:
        """Speak as another person, by a token of their own."""
        body = {"name": principal, "principal": principal, "roles": ["operator"]}
        made = await self.registry.post("tokens", body=body)
        headers = {"Authorization": f"Bearer {made['token']}"}
        async with httpx.AsyncClient(
            base_url=self.services.url, headers=headers, trust_env=False
        ) as http:
            yield Api(http)

    async def rotate(self, credential: str) -> int:
        """Rotate a credential; return its new version."""
        body = {"reason": "the demo rotates it"}
        return (await self.registry.post("credentials", credential, "rotate", body=body))["version"]

    async def attest(self, tool: str, *versions: str) -> None:
        """Confirm versions of a tool under their rotated credential."""
        for version in versions:
            body = {"reason": "reviewed: the account is the same"}
            await self.registry.post("contracts", tool, version, "attest", body=body)

    async def _deliver(self, attempt: AsyncEffect, tool: str) -> None:
        booked = reference_in(await self.provider.send(request_for(self.provider, tool, attempt)))
        await attempt.succeeded({"reference": booked}, provider_reference=booked)


def path_of(effect: JsonObject) -> str:
    """Return the states that an effect went through."""
    return " > ".join(event["to_state"] for event in effect["events"])
