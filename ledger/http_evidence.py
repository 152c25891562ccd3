"""Evidence that comes unasked, over HTTP: from people, and in the provider's signed messages."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import Field

from access.store import AccessStore
from kernel.http import ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.scope import Caller, Connection
from ledger import evidence
from ledger.evidence import Answer
from ledger.http import Name, Text, answered, rendered
from ledger.identity import EffectId
from ledger.service import Ledger
from ledger.service.evidence import Message, Told, give, receive
from ledger.webhook import verified
from tallystick.canonical import MalformedJson, parse_json
from tallystick.errors import InvalidRequest, Unauthenticated

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["evidence"])
messages = APIRouter(prefix="/v1", tags=["evidence"])
"""The routes that take no token: who asks is proven by a signature."""


class EvidenceBody(Wire):
    """What a person, or a machine with a token, knows of an effect.

    `observed_at` is when the provider was seen to say so (RFC 3339).
    """

    answer: Literal["applied", "absent", "in_progress", "rejected", "contradicts"]
    observed_at: Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
    detail: Text
    provider_reference: Name | None = None

    def told(self, principal: str) -> Told:
        """Return what is told as a value. Raises InvalidRequest for a time that is none."""
        try:
            observed_at = datetime.fromisoformat(self.observed_at)
        except ValueError:
            observed_at = None
        if observed_at is None or observed_at.tzinfo is None:
            raise InvalidRequest(
                "A time is written as in 2026-01-02T03:04:05Z.", pointer="/observed_at"
            )
        return Told(
            evidence.person(principal),
            Answer(self.answer),
            observed_at,
            self.detail,
            self.provider_reference,
        )


@router.post(
    "/effects/{effect_id}/evidence",
    status_code=201,
    dependencies=[allow(Permission.SETTLE_EFFECTS)],
)
async def add(effect_id: str, body: EvidenceBody, scope: ScopeDep) -> dict[str, Any]:
    """Record what is known of an effect. Where it settles the effect, the reconciler does so."""
    key = EffectId.parse(effect_id)
    told = body.told(scope.caller.principal)
    return rendered(await answered(scope, lambda ledger: give(ledger, key, told)))


@messages.post("/webhooks/{tenant}/{source}", status_code=204)
async def take_message(tenant: str, source: str, request: Request) -> None:
    """Take a provider's message, signed as Standard Webhooks says (`webhook-signature`).

    404 where it names an effect that is not there (yet): it is to be sent again.
    """
    state, body = request.app.state, await request.body()
    signed = verified(state.signing(tenant, source), request.headers, body)
    try:
        told = parse_json(body)
    except MalformedJson as fault:
        raise InvalidRequest(fault.detail, pointer=fault.pointer) from fault
    message = Message(source, signed.message_id, signed.evidence_id(source), signed.sent_at, told)

    async def of_tenant(connection: Connection) -> UUID | None:
        return await AccessStore(connection).tenant_named(tenant)

    tenant_id = await state.database.transact(None, of_tenant)
    if tenant_id is None:
        raise Unauthenticated("The message has no signature that is known here.")
    caller = Caller(tenant_id, tenant, evidence.webhook(source), frozenset())

    async def work(connection: Connection) -> None:
        await receive(Ledger.over(connection, caller, state.keys), message)

    await state.database.transact(tenant_id, work)
