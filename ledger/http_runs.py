"""Runs over HTTP: on whose behalf one acts, and its trace."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from kernel.http import WAS_THERE, ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.scope import Connection
from kernel.wire import time_text
from ledger import service
from ledger.http import ledger_of, rendered_approval, rendered_policy
from ledger.identity import EffectId
from ledger.service import Run, View
from ledger.store import TraceEntry
from tallystick.canonical import INTEGER_MAX
from tallystick.errors import InvalidRequest

router = APIRouter(prefix="/v1/runs", route_class=StrictRoute, tags=["runs"])

RunName = Annotated[str, Path(min_length=1, max_length=200)]
Member = Annotated[str, Field(min_length=1, max_length=128)]
Value = (
    Annotated[str, Field(min_length=1, max_length=512)]
    | Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)]
)


class SubjectBody(Wire):
    """On whose behalf a run acts: facts that the application vouches for, never a model."""

    subject: Annotated[dict[Member, Value], Field(min_length=1, max_length=20)]


@router.put(
    "/{run:path}",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.USE_EFFECTS)],
)
async def set_subject(
    run: RunName, body: SubjectBody, scope: ScopeDep, response: Response
) -> dict[str, Any]:
    """Say on whose behalf a run acts, once and for all.

    200 when it was said already.
    """
    found, is_new = await scope.transact(
        lambda connection: service.set_subject(ledger_of(scope, connection), run, body.subject)
    )
    response.status_code = 201 if is_new else 200
    assert found.subject is not None
    return _run(found) | {
        "set_by": found.subject.set_by,
        "set_at": time_text(found.subject.set_at),
    }


@router.get("/{run:path}", dependencies=[allow(Permission.READ_EFFECTS)])
async def show(
    run: RunName,
    scope: ScopeDep,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """Show a run: its effects, and what its gates refused and why in truth, oldest first.

    `next` is the `after` of the next page.
    """
    begin = _place_of(after) if after is not None else None

    async def work(connection: Connection) -> dict[str, Any]:
        ledger = ledger_of(scope, connection)
        found = await service.find_run(ledger, run)
        entries = await service.trace_of(ledger, found, begin, limit)
        following = _place(entries[-1][0]) if len(entries) == limit else None
        shown = [_entry(found, entry, view) for entry, view in entries]
        return _run(found) | {"entries": shown, "next": following}

    return await scope.transact(work)


def _run(run: Run) -> dict[str, Any]:
    return {
        "run": run.name,
        "run_id": str(run.run_id),
        "subject": dict(run.subject.subject) if run.subject else None,
    }


def _entry(run: Run, entry: TraceEntry, view: View | None) -> dict[str, Any]:
    effect_id = EffectId(run.run_id, entry.number) if entry.number is not None else None
    told: dict[str, Any] = {
        "at": time_text(entry.at),
        "kind": entry.kind,
        "effect_id": str(effect_id) if effect_id else None,
        "tool": entry.tool,
        "version": entry.version,
        "principal": entry.principal,
        "policy": rendered_policy(entry.policy, entry.policy_revision),
    }
    if view is None:
        return told | {
            "gate": entry.gate,
            "code": entry.code,
            "true_code": entry.true_code,
            "rule": entry.rule,
            "message": entry.message,
        }
    after, outcome = view.open, view.outcome
    return told | {
        "decision": "needs_human" if view.approval else "allow",
        "state": after.state if after else (outcome.status if outcome else None),
        "reason": after.reason if after else (outcome.reason if outcome else None),
        "approval": rendered_approval(view.effect, view.approval) if view.approval else None,
    }


def _place(entry: TraceEntry) -> str:
    """Write where in a trace an entry stands."""
    return f"{time_text(entry.at)},{entry.kind},{entry.key}"


def _place_of(text: str) -> tuple[datetime, str, str]:
    """Read where the next page begins. Raises InvalidRequest for what `next` never was."""
    at, _, rest = text.partition(",")
    kind, _, key = rest.partition(",")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or kind not in ("effect", "refusal") or not key:
        raise InvalidRequest("It is not the `next` of a page.")
    return moment, kind, key
