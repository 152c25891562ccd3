"""What the ledger says after a schedule: by its API, and row by row as the database's owner."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import psycopg
from psycopg.rows import dict_row

from ledger.effect import Event
from server.embedded import EmbeddedPostgres
from tests.crash.catalogue import TOOLS, name_of

STRANGERS_MAX = 5


class Standing(NamedTuple):
    """What an open row or an outcome says: the state, and the event that it goes back to."""

    state: str
    fence: int


@dataclass(frozen=True)
class Attempt:
    """A row that allowed a worker to send."""

    attempt: int
    fence: int
    contract_id: UUID
    lease_until: datetime


@dataclass(frozen=True)
class Answer:
    """A row of evidence."""

    fence: int
    source: str
    answer: str
    observed_at: datetime


@dataclass
class Record:
    """All that is recorded of one effect, and what the API tells of it."""

    effect_id: str
    tenant: str
    run: str
    identity: str
    tool: str
    effect_class: str
    contract_id: UUID
    told: dict[str, Any]
    retired_at: datetime | None = None
    events: list[Event] = field(default_factory=list[Event])
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    evidence: list[Answer] = field(default_factory=list[Answer])
    open: list[Standing] = field(default_factory=list[Standing])
    outcomes: list[Standing] = field(default_factory=list[Standing])

    @property
    def state(self) -> str:
        return self.told["state"]


class Sight(NamedTuple):
    """A thing of one tenant that another one was shown."""

    reader: str
    what: str


@dataclass(frozen=True)
class Ledger:
    """What is recorded of a schedule, and who saw what is not his."""

    records: list[Record]
    sights: list[Sight]


_NAMED = "run_id::text || '.' || number"
_OURS = "(run_id, number) IN (SELECT run_id, number FROM effect WHERE tool LIKE %s)"
_EFFECTS = f"""
    SELECT {_NAMED} AS effect_id, slug AS tenant, run, identity, tool, effect_class, contract_id,
           CASE WHEN lifecycle = 'RETIRED' THEN changed_at END AS retired_at
      FROM effect
      JOIN tenant USING (tenant_id)
      JOIN contract_state USING (contract_id)
     WHERE tool LIKE %s
"""
_ROWS = {
    "events": (
        Event,
        f"""
        SELECT {_NAMED}, fence, transition, from_state, to_state, attempt, actor, reason, at
          FROM event WHERE {_OURS} ORDER BY fence
        """,
    ),
    "attempts": (
        Attempt,
        f"""
        SELECT {_NAMED}, attempt, fence, contract_id, lease_until
          FROM effect_attempt WHERE {_OURS} ORDER BY attempt
        """,
    ),
    "evidence": (
        Answer,
        f"""
        SELECT {_NAMED}, fence, source, answer, observed_at
          FROM effect_evidence WHERE {_OURS} ORDER BY received_at
        """,
    ),
    "open": (Standing, f"SELECT {_NAMED}, state, fence FROM effect_open WHERE {_OURS}"),
    "outcomes": (
        Standing,
        f"""
        SELECT {_NAMED}, status, fence FROM effect_outcome WHERE {_OURS} ORDER BY revision
        """,
    ),
}
_TABLES = (
    "effect",
    "event",
    "effect_attempt",
    "effect_evidence",
    "effect_open",
    "effect_outcome",
    "contract",
)


def read_ledger(clients: Mapping[str, httpx.Client], postgres: Path, schedule: int) -> Ledger:
    """Read every effect of a schedule, and try to read it as somebody else."""
    told = {
        tenant: {effect["effect_id"]: effect for effect in _told(http, schedule)}
        for tenant, http in clients.items()
    }
    ours = name_of(schedule, "%")
    with (
        EmbeddedPostgres.attach(postgres) as running,
        psycopg.connect(running.url) as connection,
    ):
        rows = connection.cursor(row_factory=dict_row).execute(_EFFECTS, (ours,)).fetchall()
        everything = {key: effect for effects in told.values() for key, effect in effects.items()}
        assert everything.keys() == {row["effect_id"] for row in rows}, (
            "the API shows other effects than there are"
        )
        records = {
            row["effect_id"]: Record(**row, told=everything[row["effect_id"]]) for row in rows
        }
        for name, (kind, statement) in _ROWS.items():
            for effect_id, *values in connection.execute(statement, (ours,)):
                getattr(records[effect_id], name).append(kind(*values))
        sights = [*_rows_of_others(connection)]
    for tenant, http in clients.items():
        sights += _effects_of_others(http, tenant, set(told[tenant]), [*records.values()])
    return Ledger([*records.values()], sights)


def _told(http: httpx.Client, schedule: int) -> Iterator[dict[str, Any]]:
    for tool in TOOLS:
        after: str | None = None
        while True:
            page = {"limit": 500, "tool": name_of(schedule, tool)}
            page |= {"after": after} if after else {}
            answer = http.get("/v1/effects", params=page).raise_for_status().json()
            yield from answer["effects"]
            after = answer["next"]
            if after is None:
                break


def _effects_of_others(
    http: httpx.Client, tenant: str, listed: set[str], records: list[Record]
) -> Iterator[Sight]:
    strange = [one.effect_id for one in records if one.tenant != tenant]
    yield from (Sight(tenant, one) for one in strange if one in listed)
    for effect_id in strange[:STRANGERS_MAX]:
        if http.get(f"/v1/effects/{effect_id}").status_code != 404:
            yield Sight(tenant, effect_id)


def _rows_of_others(connection: psycopg.Connection) -> Iterator[Sight]:
    """Look at every row under the service's role, as each tenant: those of others are not there."""
    tenants = connection.execute("SELECT tenant_id, slug FROM tenant").fetchall()
    for tenant_id, slug in tenants:
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL ROLE tallystick_service")
            connection.execute(
                "SELECT set_config('tallystick.tenant', %s, true)", (str(tenant_id),)
            )
            for table in _TABLES:
                found = connection.execute(
                    f"SELECT count(*) FILTER (WHERE tenant_id <> %s), count(*) FROM {table}",
                    (tenant_id,),
                ).fetchone()
                assert found is not None
                if found[0]:
                    yield Sight(slug, f"{found[0]} of {found[1]} rows of {table}")
