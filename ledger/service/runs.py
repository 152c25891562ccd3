"""Runs: on whose behalf one acts, and its trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ledger.identity import EffectId
from ledger.service.view import Ledger, View, found, view_of
from ledger.store import RunSubject, Trace, TraceEntry
from tallystick.canonical import Json, canonical_bytes
from tallystick.errors import EffectConflict, NotFound


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the caller's tenant, and on whose behalf it acts: None where nobody said."""

    name: str
    run_id: UUID
    subject: RunSubject | None


async def set_subject(ledger: Ledger, name: str, subject: Mapping[str, Json]) -> tuple[Run, bool]:
    """Say on whose behalf a run acts, once and for all; the same again changes nothing.

    Returns the run, and whether that is new.

    Raises:
        EffectConflict: The run acts for somebody else.
    """
    run_id = await ledger.store.run_id(name)
    is_new = await ledger.gates.set_subject(run_id, subject, by=ledger.caller.principal)
    recorded = await ledger.gates.subject(run_id)
    assert recorded is not None
    if canonical_bytes(dict(recorded.subject)) != canonical_bytes(dict(subject)):
        raise EffectConflict(f"Run {name!r} acts for somebody else.", facts={"run": name})
    return Run(name, run_id, recorded), is_new


async def find_run(ledger: Ledger, name: str) -> Run:
    """Return a run. Raises NotFound where nothing was asked or said of it."""
    run_id = await ledger.store.known_run_id(name)
    if run_id is None:
        raise NotFound("There is no such run.")
    return Run(name, run_id, await ledger.gates.subject(run_id))


async def trace_of(
    ledger: Ledger, run: Run, after: tuple[datetime, str, str] | None, limit: int
) -> list[tuple[TraceEntry, View | None]]:
    """Return a part of a run's trace, oldest first: each refusal, and each effect as it stands."""
    return [
        (
            entry,
            await view_of(ledger, await found(ledger, EffectId(run.run_id, entry.number)))
            if entry.kind == "effect" and entry.number is not None
            else None,
        )
        for entry in await ledger.traces.read(Trace(run.run_id, after, limit))
    ]
