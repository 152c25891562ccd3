"""When sweeps run.

Every process keeps its own clock: what is due is claimed row by row, so no leader is needed.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# APScheduler has no types.

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from audit.service import Sealer
from reconciler.reverse import ReverseSweeper
from reconciler.store import keep_partitions
from reconciler.sweep import Sweeper
from tallystick.errors import TallystickError

_log = logging.getLogger("tallystick.reconciler")

MONTHS_AHEAD = 3
LOOK_SECONDS = 10.0
"""How often it is looked which listings are due."""
# It warns at each tick that comes while a sweep still runs, which is as intended.
logging.getLogger("apscheduler").setLevel(logging.ERROR)


@asynccontextmanager
async def scheduled(
    sweeper: Sweeper,
    reverse: ReverseSweeper,
    sealer: Sealer,
    *,
    sweep_seconds: float,
    seal_seconds: float,
) -> AsyncGenerator[None]:
    """Sweep, sweep in reverse, seal, and keep partitions ahead, until the context is left.

    A sweep of what time alone decides is a job; the questions to providers go on beside it.
    """

    async def sweep() -> None:
        try:
            while await sweeper.pass_time():
                pass
        except TallystickError as outage:
            _log.warning("the sweep stopped: %s", outage)

    async def seal() -> None:
        try:
            await sealer.seal()
        except TallystickError as outage:
            _log.warning("the sealing stopped: %s", outage)

    async def partitions() -> None:
        try:
            await sweeper.transact(
                None, lambda connection: keep_partitions(connection, months_ahead=MONTHS_AHEAD)
            )
        except TallystickError as outage:
            _log.warning("partitions were not kept: %s", outage)

    scheduler = AsyncIOScheduler(
        timezone="UTC",
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    scheduler.add_job(sweep, "interval", seconds=sweep_seconds, id="sweep")
    # A listing says itself when it is due, and a new one is at once.
    look_seconds = min(reverse.interval_seconds, LOOK_SECONDS)
    scheduler.add_job(
        _sweep_in_reverse, "interval", args=[reverse], seconds=look_seconds, id="reverse"
    )
    scheduler.add_job(seal, "interval", seconds=seal_seconds, id="seal")
    scheduler.add_job(partitions, "interval", hours=6, id="partitions")
    scheduler.start()
    questions = asyncio.create_task(sweeper.ask(pause_seconds=sweep_seconds))
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)
        questions.cancel()
        await asyncio.wait([questions])


async def _sweep_in_reverse(reverse: ReverseSweeper) -> None:
    try:
        await reverse.sweep()
    except TallystickError as outage:
        _log.warning("the reverse sweep stopped: %s", outage)
