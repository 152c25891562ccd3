"""What stays as fast as it was when a ledger grows: times, and the plans that say why.

    .venv/bin/python benchmarks/scale.py
    .venv/bin/python benchmarks/scale.py --size 5000:100 --size 5000000:100000 --plans

One embedded PostgreSQL, a ledger of each size (effects, and how many of them are open). The
service's own statements run, under its role and row-level security, as its connections prepare
them, in all ledgers by turns: the median of many, and the 8 KiB pages that one of them touches.
With `--plans` each statement's plan in the largest ledger follows, as auto_explain saw it. 500,000
effects take some minutes to make and 1.2 GB; 5,000,000 ten times that.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from psycopg.sql import SQL, Identifier
from scale_ledger import fill, some_closed

from kernel.keys import KeyRing
from kernel.scope import Caller, Connection
from ledger.approval import Status
from ledger.identity import EffectId
from ledger.service import Ledger, found, view_of
from ledger.state import State
from ledger.store import ApprovalSearch, Search
from reconciler.lanes import CONTRACT_MAX
from reconciler.store import contracts_due, tenants_due
from registry.store import RegistryStore
from rollout.store import RolloutStore
from server.embedded import EmbeddedPostgres
from tests.api import Api, running
from tests.builders import a_contract

Work = Callable[[Ledger, Connection], Awaitable[object]]

CALLS: Final = 60
WARM_CALLS: Final = 12
"""After five a statement is prepared, and after five more its plan may be a general one."""
TENANT: Final = "(NULLIF(current_setting('tallystick.tenant'::text, true), ''::text))::uuid"
DAYS: Final = 25
"""How long ago the first effect was planned: as far back as there surely are partitions."""


@dataclass
class Found:
    """What one piece of work took: milliseconds, pages, and the plans of its statements."""

    milliseconds: float
    pages: int
    plans: list[dict[str, Any]]


class Session:
    """A connection as the service has them, that can tell its plans."""

    def __init__(self, connection: Connection, caller: Caller, keys: KeyRing) -> None:
        self._connection = connection
        self._caller = caller
        self._keys = keys
        self._plans: list[dict[str, Any]] = []

    @classmethod
    @asynccontextmanager
    async def opened(cls, url: str, caller: Caller, keys: KeyRing) -> AsyncGenerator["Session"]:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("LOAD 'auto_explain'")
            for setting in (
                "auto_explain.log_analyze = on",
                "auto_explain.log_buffers = on",
                "auto_explain.log_nested_statements = on",
                "auto_explain.log_format = json",
                "client_min_messages = log",
            ):
                await connection.execute(f"SET {setting}".encode())
            session = cls(connection, caller, keys)
            connection.add_notice_handler(session._hear)
            yield session

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        _, is_plan, plan = (notice.message_primary or "").partition("plan:\n")
        if is_plan:
            self._plans.append(json.loads(plan))

    async def plans_of(self, work: Work) -> list[dict[str, Any]]:
        """Run work once, and return how its statements went about it."""
        await self._explain(is_on=True)
        self._plans.clear()
        await self.time(work)
        await self._explain(is_on=False)
        return [one for one in self._plans if is_ours(one)]

    async def _explain(self, *, is_on: bool) -> None:
        least = 0 if is_on else -1
        await self._connection.execute(f"SET auto_explain.log_min_duration = {least}".encode())

    async def time(self, work: Work) -> float:
        """Run work once, in a transaction that leaves nothing; returns its seconds."""
        async with self._connection.transaction(force_rollback=True):
            await self._connection.execute(
                "SELECT set_config('role', 'tallystick_service', true), "
                "set_config('tallystick.tenant', %s, true)",
                (str(self._caller.tenant_id),),
            )
            ledger = Ledger.over(self._connection, self._caller, self._keys)
            begun = time.perf_counter()
            await work(ledger, self._connection)
            return time.perf_counter() - begun


def is_ours(plan: dict[str, Any]) -> bool:
    """Leave out what begins a transaction, and the shell of a function whose inside is told."""
    return "set_config" not in plan["Query Text"] and plan["Plan"]["Node Type"] != "Function Scan"


def pages_of(plan: dict[str, Any]) -> int:
    top = plan["Plan"]
    return top.get("Shared Hit Blocks", 0) + top.get("Shared Read Blocks", 0)


def told(plan: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """Tell a plan, a line a node."""
    over = plan.get("Index Name") or plan.get("Relation Name") or plan.get("Function Name") or ""
    conditions = [
        f"{name.lower()}: {plan[name].replace(TENANT, 'current_tenant()')}"
        for name in ("Index Cond", "Filter", "Recheck Cond")
        if name in plan
    ]
    loops = f" x {plan['Actual Loops']:.0f}" if plan.get("Actual Loops", 1) != 1 else ""
    pages = plan.get("Shared Hit Blocks", 0) + plan.get("Shared Read Blocks", 0)
    seen = f"{plan.get('Actual Rows', 0):g} rows{loops}, {pages} pages"
    removed = plan.get("Rows Removed by Filter")
    seen += f", {removed:g} rows filtered out" if removed else ""
    yield f"{'  ' * depth}{plan['Node Type']} {over} ({seen}) {'; '.join(conditions)}".rstrip()
    for part in plan.get("Plans", ()):
        if part.get("Actual Loops") != 0:
            yield from told(part, depth + 1)


def works(old: UUID, new: UUID, closed: EffectId) -> dict[str, Work]:
    """Return what is measured."""

    def references(contract_id: UUID) -> Work:
        return lambda _, connection: RolloutStore(connection).references(contract_id)

    def listed(search: ApprovalSearch) -> Work:
        return lambda ledger, _: ledger.approvals.search(search)

    def searched(search: Search) -> Work:
        return lambda ledger, _: ledger.store.search(search)

    async def shown(ledger: Ledger, _: Connection) -> None:
        await view_of(ledger, await found(ledger, closed))
        await ledger.store.events(closed)
        await ledger.store.attempts(closed)
        await ledger.store.evidence(closed)

    return {
        "retire: nothing open refers to it": references(old),
        "retire: all that is open refers to it": references(new),
        "sweep: for whom time decides": lambda _, connection: tenants_due(connection),
        "sweep: ten that time decides": lambda ledger, _: ledger.store.overdue(10),
        "sweep: whom to ask about": lambda _, connection: contracts_due(connection),
        "sweep: claim eight": lambda ledger, _: ledger.store.in_doubt(new, CONTRACT_MAX),
        "look-up: an effect, all that is told": shown,
        "look-up: by the caller's run": lambda ledger, _: ledger.store.known_run_id("run-7"),
        "list: effects, the newest": searched(Search()),
        "list: effects that are open": searched(Search(open_only=True)),
        "list: effects in quarantine": searched(Search(state=State.QUARANTINED)),
        "list: approvals that wait": listed(ApprovalSearch(status=Status.PENDING)),
        "list: approvals that ran out": listed(ApprovalSearch(status=Status.EXPIRED)),
        "list: approvals, all": listed(ApprovalSearch()),
    }


async def facts_of(api: Api, caller: Caller) -> dict[str, Any]:
    """Publish two versions, and return what their effects are made of."""
    for version in ("2.1", "2.2"):
        await api.publish(a_contract(version=version))
    entries = await api.app.state.database.transact(
        caller.tenant_id, lambda connection: RegistryStore(connection).entries()
    )
    old, new = sorted(entries, key=lambda one: one.contract.version)
    return {
        "tenant": caller.tenant_id,
        "tool": new.contract.name,
        "digest": new.contract.contract_digest,
        "old": old.contract_id,
        "new": new.contract_id,
        "key_id": "benchmark",
    }


@dataclass(frozen=True)
class Made:
    """A ledger of some size, and what is measured in it."""

    session: Session
    works: dict[str, Work]

    @classmethod
    @asynccontextmanager
    async def of_size(
        cls, url: str, home: Path, *, effects: int, opened: int
    ) -> AsyncGenerator["Made"]:
        async with running(url, home) as api:
            caller = await api.app.state.authenticator.caller(api.http.headers["authorization"])
            facts = await facts_of(api, caller)
            facts["since"] = datetime.now(UTC) - timedelta(days=DAYS)
            facts["pace"] = DAYS * 86_400 / effects
            begun = time.perf_counter()
            async with await psycopg.AsyncConnection.connect(
                url, autocommit=True, cursor_factory=psycopg.AsyncClientCursor
            ) as owner:
                await fill(owner, facts, first=0, effects=effects, opened=opened)
                closed = EffectId(*await some_closed(owner))
            print(f"made {effects:,} effects in {time.perf_counter() - begun:.0f} s", flush=True)
            async with Session.opened(url, caller, api.app.state.keys) as session:
                yield cls(session, works(facts["old"], facts["new"], closed))


async def measure(
    url: str, home: Path, sizes: list[tuple[int, int]]
) -> dict[tuple[int, int], dict[str, Found]]:
    """Measure the ledgers by turns, so that all of them meet what else the machine does."""
    async with AsyncExitStack() as stack:
        made: dict[tuple[int, int], Made] = {}
        for effects, opened in sizes:
            own_url = await a_database(url, f"ledger_{effects}")
            made[effects, opened] = await stack.enter_async_context(
                Made.of_size(own_url, home / str(effects), effects=effects, opened=opened)
            )
        found_at: dict[tuple[int, int], dict[str, Found]] = {size: {} for size in sizes}
        for name in made[sizes[0]].works:
            times: dict[tuple[int, int], list[float]] = {size: [] for size in sizes}
            for _ in range(WARM_CALLS + CALLS):
                for size, one in made.items():
                    times[size].append(await one.session.time(one.works[name]))
            for size, one in made.items():
                plans = await one.session.plans_of(one.works[name])
                median = statistics.median(times[size][WARM_CALLS:]) * 1000
                found_at[size][name] = Found(median, sum(map(pages_of, plans)), plans)
        return found_at


async def a_database(url: str, name: str) -> str:
    """Make an empty database beside the one of a URL; returns its URL."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as owner:
        await owner.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def report(told_at: dict[tuple[int, int], dict[str, Found]], *, with_plans: bool) -> None:
    sizes = list(told_at)
    print(f"\n{'median of ' + str(CALLS) + ' (ms), pages':40}", end="")
    print("".join(f"{effects:>12,} / {opened:<10,}" for effects, opened in sizes))
    for name in told_at[sizes[0]]:
        found_at = [told_at[size][name] for size in sizes]
        print(f"{name:40}", end="")
        print("".join(f"{one.milliseconds:12.2f} {one.pages:8,}    " for one in found_at))
    if with_plans:
        for name, one in told_at[sizes[-1]].items():
            print(f"\n{name}")
            # Ten look-ups are one statement ten times.
            for plan in {each["Query Text"]: each for each in one.plans}.values():
                print("    " + "\n    ".join(told(plan["Plan"])))


def size_of(text: str) -> tuple[int, int]:
    effects, opened = map(int, text.split(":"))
    return effects, opened


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=size_of, action="append", help="EFFECTS:OPEN, ascending")
    parser.add_argument("--plans", action="store_true", help="tell the plans at the largest size")
    chosen = parser.parse_args()
    sizes = chosen.size or [(5_000, 100), (500_000, 10_000)]
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres.attach(Path(folder)) as postgres:
        found_at = asyncio.run(measure(postgres.url, Path(folder) / "home", sizes))
        report(found_at, with_plans=chosen.plans)


if __name__ == "__main__":
    main()
