"""What is quarantined, over HTTP, and what people decide of it."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from kernel.http import WAS_THERE, ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.scope import Connection
from kernel.wire import time_text
from ledger import service
from ledger.http import Name, Text, answered, history, ledger_of, rendered
from ledger.identity import EffectId
from ledger.quarantine import ADVICE, Choice, Resolution
from ledger.service import Quarantined
from ledger.state import State
from ledger.store import QuarantineSearch
from registry.service import normal_version
from tallystick.errors import InvalidRequest

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["quarantine"])


class ResolveBody(Wire):
    """A person's word on a quarantined effect.

    Who decides is whose token asks: `by` may say so too, and nobody else. Where it takes two
    people, the first word is a proposal, and the same word of another principal confirms it.
    """

    to: Literal["SUCCEEDED", "FAILED", "ABANDONED", "RETRYABLE"]
    reason: Text
    evidence: Text
    by: Name | None = None

    def resolution(self, principal: str) -> Resolution:
        """Return the word as a value. Raises InvalidRequest where it is said to be another's."""
        if self.by not in (None, principal):
            raise InvalidRequest(
                "Who decides is whose token asks: leave it out, or name its principal.",
                pointer="/by",
            )
        return Resolution(State(self.to), self.reason, self.evidence, principal)


class RetryBody(Wire):
    """Why an effect may be sent again, and what that rests on."""

    reason: Text
    evidence: Text | None = None


class WithdrawBody(Wire):
    """Why a proposal is taken back."""

    reason: Text


class MigrateBody(Wire):
    """The version that an effect is to go on with, and why."""

    version: Name
    reason: Text


def _listed(one: Quarantined) -> dict[str, Any]:
    return rendered(one.view) | {
        "cause": one.cause,
        "quarantined_at": time_text(one.event.at),
        "age_seconds": round(one.age_seconds, 3),
    }


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "choice": choice.name,
        "meaning": choice.meaning,
        "people": choice.people,
        "allowed": choice.why_not is None,
        "why_not": choice.why_not,
    }


@router.get("/quarantine", dependencies=[allow(Permission.READ_EFFECTS)])
async def quarantined(
    scope: ScopeDep,
    tool: str | None = None,
    version: str | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List what waits for a person, the longest first; `next` is the `after` of the next page."""
    search = QuarantineSearch(
        tool,
        normal_version(version) if version is not None else None,
        EffectId.parse(after) if after else None,
        limit,
    )
    found = await scope.transact(
        lambda connection: service.quarantined(ledger_of(scope, connection), search)
    )
    following = str(found[-1].view.effect.id) if len(found) == limit else None
    return {"effects": [_listed(one) for one in found], "next": following}


@router.get("/quarantine/{effect_id}", dependencies=[allow(Permission.READ_EFFECTS)])
async def show(effect_id: str, scope: ScopeDep) -> dict[str, Any]:
    """Show a quarantined effect, all that is known of it, and what may be decided."""
    key = EffectId.parse(effect_id)

    async def work(connection: Connection) -> dict[str, Any]:
        ledger = ledger_of(scope, connection)
        one, choices = await service.in_quarantine(ledger, key)
        told = {"advice": ADVICE[one.cause], "choices": [_choice(each) for each in choices]}
        return _listed(one) | told | await history(ledger, one.view)

    return await scope.transact(work)


@router.post("/effects/{effect_id}/resolve", dependencies=[allow(Permission.SETTLE_EFFECTS)])
async def resolve(effect_id: str, body: ResolveBody, scope: ScopeDep) -> dict[str, Any]:
    """Settle a quarantined effect by a person's word, with a reason and evidence.

    Where it takes two people, the answer has the `proposal` until the second one says the same.
    """
    key = EffectId.parse(effect_id)
    word = body.resolution(scope.caller.principal)
    return rendered(await answered(scope, lambda ledger: service.resolve(ledger, key, word)))


@router.post("/effects/{effect_id}/withdraw", dependencies=[allow(Permission.SETTLE_EFFECTS)])
async def withdraw(effect_id: str, body: WithdrawBody, scope: ScopeDep) -> dict[str, Any]:
    """Take back what one person proposed for a quarantined effect."""
    key = EffectId.parse(effect_id)
    return rendered(
        await answered(scope, lambda ledger: service.withdraw(ledger, key, body.reason))
    )


@router.post("/effects/{effect_id}/retry", dependencies=[allow(Permission.SETTLE_EFFECTS)])
async def retry(effect_id: str, body: RetryBody, scope: ScopeDep) -> dict[str, Any]:
    """Let a worker send a quarantined effect again, on its recorded contract and no other."""
    key = EffectId.parse(effect_id)
    return rendered(
        await answered(scope, lambda ledger: service.retry(ledger, key, body.reason, body.evidence))
    )


@router.post(
    "/effects/{effect_id}/migrate",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.SETTLE_EFFECTS)],
)
async def migrate(
    effect_id: str, body: MigrateBody, scope: ScopeDep, response: Response
) -> dict[str, Any]:
    """Plan work that was never sent anew on another version, and cancel the old effect.

    200 when that was done before.
    """
    key = EffectId.parse(effect_id)
    view = await answered(
        scope, lambda ledger: service.migrate(ledger, key, body.version, body.reason)
    )
    response.status_code = 201 if view.created else 200
    return rendered(view)
