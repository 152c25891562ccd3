"""Approvals over HTTP: what waits for a person, and the person's word."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from kernel.http import ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.scope import Connection, Scope
from kernel.wire import time_text
from ledger import service
from ledger.approval import Approval, Status
from ledger.effect import Effect
from ledger.http import Text, ledger_of, rendered_approval
from ledger.identity import EffectId
from ledger.service import Ledger, View
from ledger.store import ApprovalSearch

router = APIRouter(prefix="/v1/approvals", route_class=StrictRoute, tags=["approvals"])


class ApproveBody(Wire):
    """Why an effect may run."""

    reason: Annotated[str, Field(max_length=2000)] = ""


class RejectBody(Wire):
    """Why an effect may not run."""

    reason: Text


def _whole(effect: Effect, approval: Approval | None) -> dict[str, Any]:
    """Render an approval with what is to be approved."""
    assert approval is not None
    return rendered_approval(effect, approval) | {"arguments": effect.arguments}


@router.get("", dependencies=[allow(Permission.READ_EFFECTS)])
async def approvals(
    scope: ScopeDep,
    status: Status | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List approvals, the longest waiting first; `next` is the `after` of the next page."""
    search = ApprovalSearch(status, EffectId.parse(after) if after else None, limit)
    found = await scope.transact(
        lambda connection: service.approvals_of(ledger_of(scope, connection), search)
    )
    following = str(found[-1][0].id) if len(found) == limit else None
    return {"approvals": [_whole(*one) for one in found], "next": following}


@router.get("/{approval_id}", dependencies=[allow(Permission.READ_EFFECTS)])
async def show(approval_id: str, scope: ScopeDep) -> dict[str, Any]:
    """Show an approval with every step of it. It has the id of its effect."""
    key = service.approval_id(approval_id)

    async def work(connection: Connection) -> dict[str, Any]:
        ledger = ledger_of(scope, connection)
        view = await service.view_of(ledger, await service.approved_of(ledger, key))
        return _whole(view.effect, view.approval) | {
            "events": [
                {
                    "step": event.step,
                    "from_status": event.from_status,
                    "to_status": event.to_status,
                    "actor": event.actor,
                    "reason": event.reason,
                    "at": time_text(event.at),
                }
                for event in await ledger.approvals.events(key)
            ]
        }

    return await scope.transact(work)


@router.post("/{approval_id}/approve", dependencies=[allow(Permission.APPROVE)])
async def approve(approval_id: str, body: ApproveBody, scope: ScopeDep) -> dict[str, Any]:
    """Let an effect run, once, as it was recorded. Never for whoever planned it."""
    key = service.approval_id(approval_id)
    return await _decided(scope, lambda ledger: service.approve(ledger, key, body.reason))


@router.post("/{approval_id}/reject", dependencies=[allow(Permission.APPROVE)])
async def reject(approval_id: str, body: RejectBody, scope: ScopeDep) -> dict[str, Any]:
    """Refuse an effect. Never for whoever planned it."""
    key = service.approval_id(approval_id)
    return await _decided(scope, lambda ledger: service.reject(ledger, key, body.reason))


async def _decided(scope: Scope, work: Callable[[Ledger], Awaitable[View]]) -> dict[str, Any]:
    view = await scope.transact(lambda connection: work(ledger_of(scope, connection)))
    return _whole(view.effect, view.approval)
