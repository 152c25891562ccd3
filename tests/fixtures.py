"""The service for tests: an application on a fresh database, a provider, and what works on both."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from access.token import new_token, token_hash
from ledger.effect import Event, replay
from ledger.state import State
from reconciler.addresses import Hosts
from reconciler.sources import HttpSource, SecretOf, Source
from reconciler.sweep import Sweeper
from tests.api import Api, running
from tests.provider import Provider, listening

_ROUNDS_MAX = 200

TRACES = frozenset({"gate_refusal", "effect_idem"})
"""Where a call that a gate refused is noted, and the run that it may have begun."""


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncGenerator[Api]:
    """The application in this process, on a database of its own."""
    async with running(database_url, tmp_path / "home") as api:
        yield api


@pytest.fixture
async def provider() -> AsyncGenerator[Provider]:
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


def sweeper_of(api: Api, source: Source, *, name: str = "test") -> Sweep:
    """Return a reconciler of the application's database, without jitter."""
    state = api.app.state
    return Sweep(
        Sweeper(state.database.transact, state.keys, source, f"reconciler:{name}", lambda: 0.0)
    )


@asynccontextmanager
async def asking(
    hosts: Iterable[str], secret_of: SecretOf = lambda *_: None
) -> AsyncGenerator[HttpSource]:
    """Give a source that may ask these hosts, at whatever address, and nobody else."""
    async with httpx.AsyncClient(trust_env=False) as client:
        yield HttpSource(client, Hosts(private=frozenset(hosts)), secret_of)


@pytest.fixture
async def sweep(api: Api, provider: Provider) -> AsyncGenerator[Sweep]:
    """The reconciler of the application's database; it may ask the provider, and nobody else."""
    async with asking([f"127.0.0.1:{provider.port}"]) as source:
        yield sweeper_of(api, source)


class Owner:
    """The owner of the database: sees all rows, and does what no route can."""

    def __init__(self, connection: psycopg.AsyncConnection[TupleRow]) -> None:
        self._connection = connection

    async def rows(self, statement: str, *values: Any) -> list[TupleRow]:
        """Run one statement, and return its rows if it has any."""
        cursor = await self._connection.execute(statement.encode(), values or None)
        return await cursor.fetchall() if cursor.description else []

    async def one(self, statement: str, *values: Any) -> Any:
        """Return the one value that a statement asks for."""
        ((value,),) = await self.rows(statement, *values)
        return value

    async def run_out(self, effect: dict[str, Any]) -> None:
        """Let what an effect waits for run out: its lease, its deadline, its back-off."""
        await self.rows(
            "UPDATE effect_open SET due_at = clock_timestamp() - interval '1 second'"
            " WHERE run_id = %s AND number = %s",
            *_key(effect),
        )

    async def pass_time(self, effect: dict[str, Any], seconds: float) -> None:
        """Let all that is recorded of an effect in doubt be so much longer ago, and it be due."""
        key, ago = _key(effect), timedelta(seconds=seconds)
        await self.rows(
            "UPDATE effect_open SET unknown_since = unknown_since - %s"
            " WHERE run_id = %s AND number = %s",
            *(ago, *key),
        )
        await self.rows(
            "UPDATE effect_evidence"
            " SET observed_at = observed_at - %s, received_at = received_at - %s"
            " WHERE run_id = %s AND number = %s",
            *(ago, ago, *key),
        )
        await self.run_out(effect)

    async def put_off(self, effect: dict[str, Any]) -> None:
        """Let an effect wait for as long as the test lasts."""
        await self.rows(
            "UPDATE effect_open SET due_at = clock_timestamp() + interval '1 day'"
            " WHERE run_id = %s AND number = %s",
            *_key(effect),
        )

    async def have_asked(self, effect: dict[str, Any], checks: int) -> None:
        """Let the provider have been asked about an effect so often, and in vain."""
        await self.rows(
            "UPDATE effect_open SET checks = %s WHERE run_id = %s AND number = %s",
            *(checks, *_key(effect)),
        )

    async def pass_deadline(self, effect: dict[str, Any]) -> None:
        """Let the deadline of a plan pass."""
        await self.rows(
            "UPDATE effect_open SET (due_at, deadline_at) ="
            " ROW (clock_timestamp() - interval '1 second',"
            " clock_timestamp() - interval '1 second')"
            " WHERE run_id = %s AND number = %s",
            *_key(effect),
        )

    async def wait_for_locks(self, count: int = 1) -> None:
        """Wait until so many sessions of this database wait for a lock."""
        for _ in range(_ROUNDS_MAX):
            found = await self.one(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            if found == count:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{found} sessions wait for a lock, not {count}")

    async def suspend(self, name: str, version: str, *, suspended: bool = True) -> None:
        """Suspend a version, or let it run again."""
        await self._state(name, version, "suspended", suspended)

    async def live(self, name: str, version: str, lifecycle: str) -> None:
        """Put a version where it is in its life."""
        await self._state(name, version, "lifecycle", lifecycle)

    async def _state(self, name: str, version: str, column: str, value: Any) -> None:
        statement = SQL(
            "UPDATE contract_state AS state SET {} = %s FROM contract"
            " WHERE contract.contract_id = state.contract_id AND name = %s AND version = %s"
        ).format(Identifier(column))
        await self._connection.execute(statement, (value, name, version))

    async def tenant(self, slug: str, principal: str = "admin") -> str:
        """Make a tenant, and return an admin token of it."""
        await self.rows("INSERT INTO tenant (tenant_id, slug) VALUES (%s, %s)", uuid4(), slug)
        return await self.token(slug, "admin", principal=principal)

    async def token(self, tenant: str, *roles: str, principal: str = "admin") -> str:
        """Return a new token of a tenant, with roles."""
        token = new_token()
        await self.rows(
            "INSERT INTO api_token (tenant_id, token_id, token_hash, name, prefix, principal,"
            " roles, created_by)"
            " SELECT tenant_id, %s, %s, 'test', '', %s, %s, 'test' FROM tenant WHERE slug = %s",
            *(uuid4(), token_hash(token), principal, list(roles), tenant),
        )
        return token

    async def tables(self) -> list[str]:
        """Return the name of every table that holds rows."""
        found = await self.rows(
            "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
            " AND relnamespace = 'public'::regnamespace ORDER BY relname"
        )
        return [name for (name,) in found]

    async def counts(self) -> dict[str, int]:
        """Return how many rows each table holds."""
        return {
            table: (await self.rows(f"SELECT count(*) FROM {table}"))[0][0]
            for table in await self.tables()
        }

    async def check_ledger(self, run: str | None = None) -> dict[str, tuple[State, int]]:
        """Hold every effect, or those of one run, to what is always true of one.

        Returns the state and the number of attempts of each.
        """
        histories: dict[str, list[Event]] = {}
        for effect_id, *event in await self.rows(_HISTORIES, run, run):
            histories.setdefault(effect_id, []).append(Event(*event))
        found: dict[str, tuple[State, int]] = {}
        for effect_id, effect_class, opened, closed, attempts, strays, lifecycle in await self.rows(
            _STANDINGS, run, run
        ):
            state, fence, attempt = replay(histories[effect_id])
            assert fence == len(histories[effect_id]) - 1, effect_id
            assert opened or closed, f"{effect_id} is neither open nor closed"
            # What was closed once and is open again waits for a person, and for nothing else.
            assert not (opened and closed) or state is State.QUARANTINED, effect_id
            assert (opened or closed) == f"{state} {fence}", effect_id
            assert attempts == attempt, effect_id
            assert strays == 0, f"{effect_id} was attempted on another contract"
            assert attempts <= 1 or effect_class not in ("UNKNOWN", "NON_RETRYABLE"), effect_id
            is_quarantined = state is State.QUARANTINED
            assert lifecycle != "RETIRED" or not opened or is_quarantined, effect_id
            found[effect_id] = (state, attempts)
        return found

    async def effects_count(self) -> dict[str, int]:
        """Return how many rows each table holds, but for those in which a refused call is noted."""
        counts = await self.counts()
        return {table: count for table, count in counts.items() if table not in TRACES}

    async def dump(self, *, traces: bool = True) -> str:
        """Return every row of every table as text, and what is binary in it as text too.

        Without ``traces`` the tables are left out in which a refused call is noted.
        """
        lines = [
            f"{table} {row}"
            for table in await self.tables()
            if traces or table not in TRACES
            for (row,) in await self.rows(f"SELECT {table}::text FROM {table}")
        ]
        lines += [
            repr(value)
            for statement in (
                "SELECT sealed FROM effect_payload",
                "SELECT request_fingerprint || operation_fingerprint FROM effect",
            )
            for (value,) in await self.rows(statement)
        ]
        return "\n".join(lines)


_HISTORIES = """
    SELECT event.run_id || '.' || event.number, fence, transition, from_state, to_state, attempt,
           actor, reason, at
      FROM event
      JOIN effect USING (run_id, number)
     WHERE %s::text IS NULL OR effect.run = %s
     ORDER BY event.run_id, event.number, fence
"""
_STANDINGS = """
    SELECT effect.run_id || '.' || effect.number, effect.effect_class,
           (SELECT state || ' ' || fence FROM effect_open AS open
             WHERE open.run_id = effect.run_id AND open.number = effect.number),
           (SELECT status || ' ' || fence FROM effect_outcome AS outcome
             WHERE outcome.run_id = effect.run_id AND outcome.number = effect.number
             ORDER BY revision DESC LIMIT 1),
           count(attempt),
           count(*) FILTER (WHERE attempt.contract_id <> effect.contract_id),
           state.lifecycle
      FROM effect
      JOIN contract_state AS state USING (contract_id)
      LEFT JOIN effect_attempt AS attempt USING (run_id, number)
     WHERE %s::text IS NULL OR effect.run = %s
     GROUP BY effect.run_id, effect.number, effect.effect_class, state.lifecycle
"""


def _key(effect: dict[str, Any]) -> tuple[UUID, int]:
    run_id, _, number = effect["effect_id"].partition(".")
    return UUID(run_id), int(number)


@pytest.fixture
async def owner(database_url: str) -> AsyncGenerator[Owner]:
    """The owner of the application's database."""
    async with owning(database_url) as owner:
        yield owner


@pytest.fixture
async def histories(api: Api, owner: Owner) -> AsyncGenerator[None]:
    """After a test, every effect that it made replays to its state."""
    yield
    await api.check_histories()
    await owner.check_ledger()


@asynccontextmanager
async def owning(database_url: str) -> AsyncGenerator[Owner]:
    """Connect to a database as its owner; every statement is a transaction of its own."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield Owner(connection)


@pytest.fixture
async def other(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    """The application as an administrator of a second tenant has it."""
    other = api.speaking_for(await owner.tenant("other"))
    async with other.http:
        yield other
