"""A service on the embedded PostgreSQL outlives the death of all that runs it."""

import asyncio
import os
import signal
from pathlib import Path

import psutil

from server.embedded import EmbeddedPostgres, stop
from tests.api import Api, running
from tests.builders import a_contract


async def until_ready(api: Api) -> None:
    async with asyncio.timeout(60):
        while (await api.ask("GET", "/readyz")).status != 200:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.1)


async def test_a_killed_supervisor_is_replaced_while_the_service_runs(tmp_path: Path):
    home = tmp_path / "home"
    try:
        async with running(None, home) as api:
            await api.publish(a_contract())
            with EmbeddedPostgres.attach(home / "postgres") as postgres:
                postmaster = psutil.Process(postgres.postmaster_pid)
            supervisor = postmaster.parent()
            assert supervisor is not None
            os.kill(supervisor.pid, signal.SIGKILL)
            await asyncio.to_thread(postmaster.wait, 20)
            await until_ready(api)
            shown = await api.ask("GET", "/v1/contracts/billing.send_invoice/2.1")
            assert shown.status == 200, "what was committed is there"
    finally:
        stop(home / "postgres")
