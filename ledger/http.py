"""The ledger over HTTP: routes and wire models, nothing else."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import Field

from kernel.http import WAS_THERE, ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.scope import Connection, Scope
from kernel.wire import time_text
from ledger import service, store
from ledger.admission import Worker
from ledger.approval import Approval
from ledger.completion import Report, Verdict
from ledger.effect import Effect, Outcome
from ledger.identity import EffectId, provider_key
from ledger.quarantine import Word
from ledger.refused import Refused
from ledger.service import Dispatch, Ledger, PlanRequest, View
from ledger.state import State
from ledger.store import Search
from registry.http import ReferenceBody
from tallystick.errors import InvalidRequest, NeedsHuman

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["ledger"])

Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]
Identifier = Annotated[UUID, Field(strict=False)]


class WorkerBody(Wire):
    """Who asks to send: an id made at process start, and a nonce made for this one question."""

    worker_id: Identifier
    nonce: Identifier

    def worker(self, principal: str) -> Worker:
        """Return the worker as a value: a process of the principal that asks."""
        return Worker(self.worker_id, self.nonce, principal)


class PlanBody(Wire):
    """A call to record before it begins."""

    run: Name
    effect: Name | None = None
    occurrence: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    key: Name | None = None
    tool: ReferenceBody
    arguments: dict[str, Any]
    dispatch: WorkerBody | None = None
    origin: Literal["runtime", "queue", "look_up"] = "runtime"
    lease: str | None = None
    deadline_seconds: Annotated[float, Field(gt=0, le=30 * 86400)] | None = None

    def request(self, principal: str) -> PlanRequest:
        """Return the request as a value. Raises InvalidRequest for a tuple without its form."""
        return PlanRequest(
            run=self.run,
            reference=self.tool.reference(at="/tool"),
            arguments=self.arguments,
            effect=self.effect,
            occurrence=self.occurrence,
            key=self.key,
            origin=self.origin,
            lease=self.lease,
            deadline_seconds=self.deadline_seconds,
            worker=self.dispatch.worker(principal) if self.dispatch else None,
        )


class DispatchBody(WorkerBody):
    """A request to send a recorded effect.

    The tuple, where it is given, must be the recorded one.
    """

    tool: ReferenceBody | None = None


class ErrorBody(Wire):
    """What the provider said when it said no."""

    code: Name
    message: Annotated[str, Field(max_length=2000)] = ""


class OutcomeBody(Wire):
    """A worker's report on the attempt that its fence names."""

    worker_id: Identifier
    fence: Annotated[int, Field(ge=0)]
    outcome: Literal["succeeded", "failed", "unknown"]
    result: Any = None
    error: ErrorBody | None = None
    provider_reference: Name | None = None
    not_sent: bool = False

    def report(self, principal: str) -> Report:
        """Return the report as a value. Raises InvalidRequest where it contradicts itself."""
        if self.not_sent and self.outcome != "failed":
            raise InvalidRequest("What was not sent has failed.", pointer="/not_sent")
        return Report(
            worker_id=self.worker_id,
            principal=principal,
            fence=self.fence,
            verdict=Verdict(self.outcome),
            result=self.result,
            has_result="result" in self.model_fields_set,
            error_code=self.error.code if self.error else None,
            error_message=self.error.message if self.error else None,
            provider_reference=self.provider_reference,
            not_sent=self.not_sent,
        )


class CancelBody(Wire):
    """Why an effect is given up."""

    reason: Text


class HeartbeatBody(Wire):
    """What a worker process calls itself."""

    label: Annotated[str, Field(max_length=200)] = ""


def rendered(view: View) -> dict[str, Any]:
    """Render an effect as the wire has it."""
    effect, after, outcome = view.effect, view.open, view.outcome
    return {
        "effect_id": str(effect.id),
        "run": effect.run or None,
        "run_id": str(effect.id.run_id),
        "effect": effect.identity or None,
        "key": effect.idem_key,
        "tool": effect.tool,
        "version": effect.version,
        "contract_digest": effect.contract_digest,
        "effect_class": effect.effect_class,
        "capabilities": None if effect.is_orphan else sorted(effect.capabilities),
        "credential_version": None if effect.is_orphan else effect.credential_version,
        "principal": effect.principal or None,
        "origin": effect.origin,
        "state": after.state if after else (outcome.status if outcome else None),
        "fence": after.fence if after else (outcome.fence if outcome else None),
        "attempt": after.attempt if after else None,
        "reason": after.reason if after else (outcome.reason if outcome else None),
        "due_at": time_text(after.due_at if after else None),
        "planned_at": time_text(effect.planned_at),
        "policy": rendered_policy(effect.policy, effect.policy_revision),
        "approval": rendered_approval(effect, view.approval) if view.approval else None,
        "proposal": rendered_word(view.proposal) if view.proposal else None,
        "supersedes": str(effect.supersedes) if effect.supersedes else None,
        "superseded_by": str(view.superseded_by) if view.superseded_by else None,
        "created": view.created,
        "arguments": effect.arguments,
        "dispatch": _dispatch(view, view.dispatch) if view.dispatch else None,
        "outcome": _outcome(outcome) if outcome else None,
    }


def rendered_policy(policy: str | None, revision: int | None) -> dict[str, Any] | None:
    """Render the revision of a policy that a call was held to, None where none was in force."""
    return {"policy": policy, "revision": revision} if policy is not None else None


def rendered_approval(effect: Effect, approval: Approval) -> dict[str, Any]:
    """Render the approval of an effect."""
    return {
        "approval_id": str(effect.id),
        "effect_id": str(effect.id),
        "run": effect.run,
        "tool": effect.tool,
        "version": effect.version,
        "effect_class": effect.effect_class,
        "status": approval.status,
        "question": approval.question,
        "rule": approval.rule,
        "policy": rendered_policy(effect.policy, effect.policy_revision),
        "contract_digest": effect.contract_digest,
        "fingerprint": effect.request_fingerprint.hex(),
        "credential_version": effect.credential_version,
        "requested_by": effect.principal,
        "requested_at": time_text(approval.requested_at),
        "expires_at": time_text(approval.expires_at),
        "decided_by": approval.decided_by,
        "decided_at": time_text(approval.decided_at),
        "reason": approval.reason,
    }


def rendered_word(word: Word) -> dict[str, Any]:
    """Render a person's word on a quarantined effect that takes two of them."""
    said = word.resolution
    return {
        "step": word.step,
        "fence": word.fence,
        "status": word.status,
        "to": said.to_state,
        "by": said.by,
        "proposed_by": word.proposed_by,
        "reason": said.reason,
        "evidence": said.evidence,
        "at": time_text(word.at),
    }


def _dispatch(view: View, dispatch: Dispatch) -> dict[str, Any]:
    idempotency = view.contract.idempotency
    place = None
    if idempotency is not None:
        place = (
            {"header": idempotency.header}
            if idempotency.header
            else {"argument": idempotency.argument}
        )
    return {
        "owned": dispatch.owned,
        "fence": dispatch.fence,
        "attempt": dispatch.attempt,
        "lease_seconds": dispatch.lease_seconds,
        "idempotency_key": dispatch.provider_key,
        "idempotency": place,
        "arguments": dispatch.arguments,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    ending = outcome.ending
    error = {"code": ending.error_code, "message": ending.error_message or ""}
    return {
        "status": outcome.status,
        "revision": outcome.revision,
        "result": ending.result,
        "invalid_result": list(ending.invalid_result) or None,
        "error": error if ending.error_code else None,
        "provider_reference": ending.provider_reference,
        "reason": outcome.reason,
        "decided_by": outcome.decided_by,
        "finished_at": time_text(outcome.finished_at),
    }


def ledger_of(scope: Scope, connection: Connection) -> Ledger:
    """Return the ledger of one transaction."""
    return Ledger.over(
        connection, scope.caller, scope.keys, approval_seconds=scope.approval_seconds
    )


async def answered(scope: Scope, work: Callable[[Ledger], Awaitable[View]]) -> View:
    """Run a use case, commit it, and only then tell its refusal.

    The step that it caused is durable; or the line in the trace, where a gate left nothing else.
    """
    try:
        view = await scope.transact(lambda connection: work(ledger_of(scope, connection)))
    except Refused as refused:
        noted = refused
        await scope.transact(
            lambda connection: service.note_refused(ledger_of(scope, connection), noted)
        )
        raise noted.told from None
    if view.refusal is not None:
        view.refusal.facts["effect_id"] = str(view.effect.id)
        if view.approval is not None and isinstance(view.refusal, NeedsHuman):
            view.refusal.facts |= _waiting(view.effect, view.approval)
        raise view.refusal
    return view


def _waiting(effect: Effect, approval: Approval) -> dict[str, Any]:
    """Return what a program has to know of a call that waits for a person."""
    shown = rendered_approval(effect, approval)
    told = {name: shown[name] for name in ("approval_id", "status", "expires_at")}
    return told | {"policy": effect.policy}


@router.post(
    "/effects",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.USE_EFFECTS)],
)
async def plan(body: PlanBody, scope: ScopeDep, response: Response) -> dict[str, Any]:
    """Record an effect before it begins, and with `dispatch` take it at once.

    200 when it was there.
    """
    request = body.request(scope.caller.principal)
    view = await answered(scope, lambda ledger: service.plan(ledger, request))
    response.status_code = 201 if view.created else 200
    return rendered(view)


@router.get("/effects", dependencies=[allow(Permission.READ_EFFECTS)])
async def effects(
    scope: ScopeDep,
    state: State | None = None,
    run: str | None = None,
    tool: str | None = None,
    after: str | None = None,
    *,
    open_only: Annotated[bool, Query(alias="open")] = False,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List effects, newest run first; `next` is the `after` of the next page."""
    search = Search(state, open_only, run, tool, EffectId.parse(after) if after else None, limit)

    async def work(connection: Connection) -> list[View]:
        ledger = ledger_of(scope, connection)
        return [await service.view_of(ledger, found) for found in await ledger.store.search(search)]

    views = await scope.transact(work)
    following = str(views[-1].effect.id) if len(views) == limit else None
    return {"effects": [rendered(view) for view in views], "next": following}


async def history(ledger: Ledger, view: View) -> dict[str, Any]:
    """Render everything that is recorded of an effect, beside the effect itself.

    With the key that the provider knows it by, for whoever has to look it up there.
    """
    key, has_key = view.effect.id, view.contract.idempotency is not None
    return {
        "idempotency_key": provider_key(ledger.caller.tenant_id, key) if has_key else None,
        "events": [
            {
                "number": event.fence,
                "transition": event.transition,
                "from_state": event.from_state,
                "to_state": event.to_state,
                "fence": event.fence,
                "attempt": event.attempt,
                "actor": event.actor,
                "reason": event.reason,
                "at": time_text(event.at),
            }
            for event in await ledger.store.events(key)
        ],
        "attempts": [
            {
                "attempt": attempt.attempt,
                "fence": attempt.fence,
                "worker_id": str(attempt.worker_id),
                "credential_version": attempt.credential_version,
                "dispatched_at": time_text(attempt.dispatched_at),
                "lease_until": time_text(attempt.lease_until),
            }
            for attempt in await ledger.store.attempts(key)
        ],
        "evidence": [
            {
                "evidence_id": str(evidence.evidence_id),
                "fence": evidence.fence,
                "source": evidence.source,
                "answer": evidence.answer,
                "provider_reference": evidence.provider_reference,
                "observed_at": time_text(evidence.observed_at),
                "received_at": time_text(evidence.received_at),
                "detail": evidence.detail,
            }
            for evidence in await ledger.store.evidence(key)
        ],
        "resolutions": [rendered_word(word) for word in await ledger.quarantine.words(key)],
        "outcomes": [_outcome(outcome) for outcome in await ledger.store.outcomes(key)],
    }


@router.get("/effects/{effect_id}", dependencies=[allow(Permission.READ_EFFECTS)])
async def show(effect_id: str, scope: ScopeDep) -> dict[str, Any]:
    """Show an effect with everything that is recorded of it."""
    key = EffectId.parse(effect_id)

    async def work(connection: Connection) -> dict[str, Any]:
        ledger = ledger_of(scope, connection)
        view = await service.view_of(ledger, await service.found(ledger, key))
        return rendered(view) | await history(ledger, view)

    return await scope.transact(work)


@router.post("/effects/{effect_id}/dispatch", dependencies=[allow(Permission.USE_EFFECTS)])
async def dispatch(effect_id: str, body: DispatchBody, scope: ScopeDep) -> dict[str, Any]:
    """Take a planned or retryable effect. Only `dispatch.owned` allows a send."""
    key = EffectId.parse(effect_id)
    presented = body.tool.reference(at="/tool") if body.tool else None
    worker = body.worker(scope.caller.principal)
    return rendered(
        await answered(scope, lambda ledger: service.dispatch(ledger, key, worker, presented))
    )


@router.post("/effects/{effect_id}/outcome", dependencies=[allow(Permission.USE_EFFECTS)])
async def outcome(effect_id: str, body: OutcomeBody, scope: ScopeDep) -> dict[str, Any]:
    """Report how an attempt ended. A stale report is refused, and kept as evidence."""
    key = EffectId.parse(effect_id)
    told = body.report(scope.caller.principal)
    return rendered(await answered(scope, lambda ledger: service.report(ledger, key, told)))


@router.post("/effects/{effect_id}/cancel", dependencies=[allow(Permission.CANCEL_EFFECTS)])
async def cancel(effect_id: str, body: CancelBody, scope: ScopeDep) -> dict[str, Any]:
    """Give an effect up before it runs."""
    key = EffectId.parse(effect_id)
    return rendered(await answered(scope, lambda ledger: service.cancel(ledger, key, body.reason)))


@router.put("/workers/{worker_id}/heartbeat", dependencies=[allow(Permission.USE_EFFECTS)])
async def heartbeat(worker_id: UUID, body: HeartbeatBody, scope: ScopeDep) -> dict[str, Any]:
    """Note that a worker process is alive: one heartbeat a process, never one an effect."""
    heard_at = await scope.transact(
        lambda connection: store.heartbeat(connection, worker_id, body.label)
    )
    return {"worker_id": str(worker_id), "heartbeat_at": time_text(heard_at)}


@router.get("/workers", dependencies=[allow(Permission.READ_EFFECTS)])
async def workers(scope: ScopeDep) -> dict[str, Any]:
    """List the worker processes that were heard of."""
    return {
        "workers": [
            {
                "worker_id": str(one.worker_id),
                "label": one.label,
                "started_at": time_text(one.started_at),
                "heartbeat_at": time_text(one.heartbeat_at),
            }
            for one in await scope.transact(store.workers)
        ]
    }
