"""What the ledger says after a crash test: by its API, and row by row as the database's owner."""

from collections.abc import Iterator
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

    source: str
    answer: str
    observed_at: datetime


@dataclass
class Record:
    """All that is recorded of one effect, and what the API tells of it."""

    effect_id: str
    run: str
    identity: str
    tool: str
    effect_class: str
    contract_id: UUID
    told: dict[str, Any]
    events: list[Event] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    evidence: list[Answer] = field(default_factory=list)
    open: list[Standing] = field(default_factory=list)
    outcomes: list[Standing] = field(default_factory=list)

    @property
    def state(self) -> str:
        return self.told["state"]


_EFFECTS = """
    SELECT run_id::text || '.' || number AS effect_id, run, identity, tool, effect_class,
           contract_id
      FROM effect
"""
_ROWS = {
    "events": (
        Event,
        """
        SELECT run_id::text || '.' || number, fence, transition, from_state, to_state, attempt,
               actor, reason, at
          FROM event ORDER BY fence
        """,
    ),
    "attempts": (
        Attempt,
        """
        SELECT run_id::text || '.' || number, attempt, fence, contract_id, lease_until
          FROM effect_attempt ORDER BY attempt
        """,
    ),
    "evidence": (
        Answer,
        """
        SELECT run_id::text || '.' || number, source, answer, observed_at
          FROM effect_evidence ORDER BY received_at
        """,
    ),
    "open": (Standing, "SELECT run_id::text || '.' || number, state, fence FROM effect_open"),
    "outcomes": (
        Standing,
        "SELECT run_id::text || '.' || number, status, fence FROM effect_outcome ORDER BY revision",
    ),
}


def read_ledger(http: httpx.Client, home: Path) -> list[Record]:
    """Read every effect."""
    told = {effect["effect_id"]: effect for effect in _told(http)}
    with (
        EmbeddedPostgres.attach(home / "postgres") as postgres,
        psycopg.connect(postgres.url) as connection,
    ):
        rows = connection.cursor(row_factory=dict_row).execute(_EFFECTS).fetchall()
        records = {row["effect_id"]: Record(**row, told=told[row["effect_id"]]) for row in rows}
        for name, (kind, statement) in _ROWS.items():
            for effect_id, *values in connection.execute(statement):
                getattr(records[effect_id], name).append(kind(*values))
    assert told.keys() == records.keys(), "the API shows other effects than there are"
    return list(records.values())


def _told(http: httpx.Client) -> Iterator[dict[str, Any]]:
    after: str | None = None
    while True:
        page = {"limit": 200} | ({"after": after} if after else {})
        answer = http.get("/v1/effects", params=page).raise_for_status().json()
        yield from answer["effects"]
        after = answer["next"]
        if after is None:
            return
