"""The running service: its database, its keys, and what it cleans up.

Shared by the server and the reconciler.
"""

import asyncio
import logging
import os
import random
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx

from audit.service import Sealer
from kernel.keys import KeyRing
from reconciler.plugins import Plugins
from reconciler.reverse import ReverseSweeper
from reconciler.schedule import scheduled
from reconciler.sources import HttpSource, Sources
from reconciler.sweep import Sweeper
from server.bootstrap import prepare
from server.database import Database
from server.embedded import EmbeddedPostgres, EmbeddedPostgresError
from server.home import open_home, read_keys
from server.secret_file import Secrets, read_secrets
from server.settings import Settings
from tallystick.errors import RegistryUnavailable

_log = logging.getLogger("tallystick.server")

_WATCH_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Service:
    """What is open while the service runs."""

    settings: Settings
    database: Database
    keys: KeyRing = field(repr=False)
    owner_url: str = field(repr=False)
    """The address of the database for its owner. Requests never go there."""


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Service]:
    """Open and prepare the database: without a DATABASE_URL, the embedded one.

    Raises:
        RegistryUnavailable: The service cannot be opened on this machine, the database cannot be
            started or reached, or the key file is not its own.
    """
    async with AsyncExitStack() as stack:
        try:
            service = await _open(settings, stack)
        except OSError as fault:
            raise RegistryUnavailable(f"The service cannot start: {fault}.") from fault
        yield service


async def _open(settings: Settings, stack: AsyncExitStack) -> Service:
    home = open_home(settings.home)
    database_url = settings.database_url
    if database_url is None:
        embedded = await _attach(settings)
        await stack.enter_async_context(_kept(settings, embedded))
        database_url = embedded.url
    try:
        keys = read_keys(settings.key_file or home / "keys.json")
    except ValueError as fault:
        raise RegistryUnavailable(str(fault)) from fault
    await asyncio.to_thread(prepare, database_url, home, keys)
    database = await stack.enter_async_context(
        Database.opened(database_url, pool_size=settings.pool_size)
    )
    return Service(settings, database, keys, database_url)


@asynccontextmanager
async def _kept(settings: Settings, embedded: EmbeddedPostgres) -> AsyncGenerator[None]:
    """Start the embedded PostgreSQL again, on its last port, if its supervisor was killed."""

    async def watch() -> None:
        nonlocal embedded
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            try:
                fresh = await _attach(settings)
            except RegistryUnavailable as outage:
                _log.warning("the embedded PostgreSQL does not start: %s", outage)
                continue
            # The new use is held before the old one is let go, so that there is always one.
            embedded, former = fresh, embedded
            await asyncio.to_thread(former.close)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        embedded.close()


async def _attach(settings: Settings) -> EmbeddedPostgres:
    try:
        return await asyncio.to_thread(EmbeddedPostgres.attach, settings.home / "postgres")
    except EmbeddedPostgresError as fault:
        raise RegistryUnavailable(str(fault)) from fault


def secrets_of(settings: Settings) -> Secrets:
    """Return the secrets of the service. Raises RegistryUnavailable when their file is none."""
    try:
        return read_secrets(settings.secrets_file)
    except (OSError, ValueError) as fault:
        raise RegistryUnavailable(str(fault)) from fault


@asynccontextmanager
async def reconciling(service: Service) -> AsyncGenerator[Sweeper]:
    """Run the reconciler on its schedule while the context lasts.

    Raises RegistryUnavailable when the file of secrets is none.
    """
    settings = service.settings
    secrets = secrets_of(settings)
    # How many questions are open, the lanes say: with a limit here too, one would wait for another.
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(trust_env=False, limits=limits) as client:
        transact, keys = service.database.transact, service.keys
        http = HttpSource(client, settings.hosts, secrets)
        actor = f"reconciler:{socket.gethostname()}:{os.getpid()}"
        sweeper = Sweeper(
            transact=transact,
            keys=keys,
            source=Sources(http, Plugins.installed()),
            actor=actor,
            draw=random.random,
        )
        async with scheduled(
            sweeper,
            ReverseSweeper(transact, keys, http, actor, settings.reverse_sweep_seconds),
            Sealer(transact, keys),
            sweep_seconds=settings.sweep_seconds,
            seal_seconds=settings.seal_seconds,
        ):
            yield sweeper
