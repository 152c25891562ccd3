"""The service for tests: the application on a fresh database, a provider, and the reconciler by hand."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.sources import HttpSource
from reconciler.sweep import Sweeper
from tests.api import Api, running
from tests.provider import Provider, listening

_ROUNDS_MAX = 200


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    """The application in this process, on a database of its own."""
    async with running(database_url, tmp_path / "home") as api:
        yield api


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """A provider on loopback that keeps its own books."""
    async with listening() as provider:
        yield provider


class Sweep:
    """The reconciler, run by hand: one sweep at a time."""

    def __init__(self, sweeper: Sweeper) -> None:
        self.sweeper = sweeper

    async def once(self) -> int:
        """Sweep once."""
        return await self.sweeper.sweep()

    async def until(self, api: Api, effect: dict[str, Any], state: str) -> list[str]:
        """Sweep until an effect is in a state; return the states that its history went through."""
        for _ in range(_ROUNDS_MAX):
            await self.once()
            shown = await api.show(effect)
            if shown["state"] == state:
                return [event["to_state"] for event in shown["events"]]
            await asyncio.sleep(0.05)
        raise AssertionError(f"the effect is {shown['state']}, not {state}: {shown['events']}")


@pytest.fixture
async def sweep(api: Api, provider: Provider) -> AsyncIterator[Sweep]:
    """The reconciler of the application's database; it may ask the provider, and nobody else."""
    async with httpx.AsyncClient(trust_env=False) as client:
        allowed = frozenset({f"127.0.0.1:{provider.port}"})
        source = HttpSource(client, allowed, lambda _: None)
        state = api.app.state
        yield Sweep(Sweeper(state.database.transact, state.keys, source, "reconciler:test", lambda: 0.0))
