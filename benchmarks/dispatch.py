"""How many effects a second one process takes from planned to closed, beside bare commits.

    .venv/bin/python benchmarks/dispatch.py [--effects 400] [--rounds 3]

Three arms run in turn in each round, on one embedded PostgreSQL, so that what else the machine does
meets them alike: two bare commits (one row inserted, then updated), the ledger called in this
process, and the whole HTTP application without a socket. Each runs at 1 and at 16 at once. The
median of the rounds is printed.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID, uuid4

from kernel.scope import Caller, Connection
from ledger import service
from ledger.admission import Worker
from ledger.completion import Report, Verdict
from ledger.service import Ledger, PlanRequest
from server.embedded import EmbeddedPostgres
from tallystick.tool_contract import ToolReference
from tests.api import Api, running
from tests.builders import ARGUMENTS, a_contract

Arm = Callable[[str], Awaitable[None]]


def bare(api: Api, caller: Caller) -> Arm:
    """Two commits that do almost nothing."""

    async def insert(connection: Connection, worker_id: UUID) -> None:
        await connection.execute(
            "INSERT INTO worker_session (tenant_id, worker_id) VALUES (current_tenant(), %s)",
            (worker_id,),
        )

    async def touch(connection: Connection, worker_id: UUID) -> None:
        await connection.execute(
            "UPDATE worker_session SET heartbeat_at = now() WHERE worker_id = %s", (worker_id,)
        )

    async def one(_: str) -> None:
        worker_id, transact = uuid4(), api.app.state.database.transact
        await transact(caller.tenant_id, lambda connection: insert(connection, worker_id))
        await transact(caller.tenant_id, lambda connection: touch(connection, worker_id))

    return one


def in_process(api: Api, caller: Caller, reference: ToolReference) -> Arm:
    """Plan, dispatch and report through the ledger's service."""
    transact, keys = api.app.state.database.transact, api.app.state.keys

    def ledger(connection: Connection) -> Ledger:
        return Ledger.over(connection, caller, keys)

    async def one(name: str) -> None:
        worker = Worker(uuid4(), uuid4(), caller.principal)
        request = PlanRequest("bench", reference, ARGUMENTS, effect=name, worker=worker)
        view = await transact(
            caller.tenant_id, lambda connection: service.plan(ledger(connection), request)
        )
        told = Report(worker.worker_id, worker.principal, view.dispatch.fence, Verdict.SUCCEEDED)
        await transact(
            caller.tenant_id,
            lambda connection: service.report(ledger(connection), view.effect.id, told),
        )

    return one


def over_http(api: Api, reference: ToolReference) -> Arm:
    """Plan, dispatch and report through the application."""

    async def one(name: str) -> None:
        effect = await api.dispatched(reference.to_json(), run="bench-http", effect=name)
        await api.report(effect, "succeeded", result={"invoice_id": "inv_1"})

    return one


async def rate(arm: Arm, *, effects: int, at_once: int) -> float:
    """Return effects a second."""
    places = asyncio.Semaphore(at_once)

    async def placed(name: str) -> None:
        async with places:
            await arm(name)

    begun = time.perf_counter()
    await asyncio.gather(*(placed(str(uuid4())) for _ in range(effects)))
    return effects / (time.perf_counter() - begun)


async def measure(url: str, home: Path, *, effects: int, rounds: int) -> None:
    async with running(url, home, pool_size=16) as api:
        reference = ToolReference.from_json(await api.publish(a_contract()))

        caller = await api.app.state.authenticator.caller(api.http.headers["authorization"])
        arms = {
            "two bare commits": bare(api, caller),
            "ledger in process": in_process(api, caller, reference),
            "over HTTP": over_http(api, reference),
        }
        found: dict[tuple[str, int], list[float]] = {}
        for _ in range(rounds):
            for name, arm in arms.items():
                for at_once in (1, 16):
                    speed = await rate(arm, effects=effects, at_once=at_once)
                    found.setdefault((name, at_once), []).append(speed)
        print(
            f"{'effects a second, median of ' + str(rounds):32}{'1 at once':>12}{'16 at once':>12}"
        )
        for name in arms:
            medians = [statistics.median(found[name, at_once]) for at_once in (1, 16)]
            print(f"{name:32}{medians[0]:12.0f}{medians[1]:12.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effects", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres.attach(Path(folder)) as postgres:
        asyncio.run(
            measure(
                postgres.url,
                Path(folder) / "home",
                effects=chosen.effects,
                rounds=chosen.rounds,
            )
        )


if __name__ == "__main__":
    main()
