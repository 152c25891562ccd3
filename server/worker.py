"""The reconciler as a process of its own."""

import asyncio
import signal

from server.service import opened, reconciling
from server.settings import Settings


def run(settings: Settings) -> None:
    """Reconcile until SIGTERM or SIGINT.

    Raises RegistryUnavailable when the service cannot be opened.
    """
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with opened(settings) as service, reconciling(service):
        await stop.wait()
