"""Tokens over HTTP: routes and wire models, nothing else."""

from datetime import timedelta
from typing import Annotated, Any, cast
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from access import service
from access.authentication import Authenticator
from access.service import Issued
from access.store import AccessStore
from access.token import ApiToken
from kernel.http import ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission, Role
from kernel.wire import time_text

router = APIRouter(
    prefix="/v1",
    route_class=StrictRoute,
    tags=["access"],
    dependencies=[allow(Permission.MANAGE_TOKENS)],
)

_SECONDS_MAX = 10 * 366 * 86400


class TokenBody(Wire):
    """A token to make."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
    roles: Annotated[list[Annotated[Role, Field(strict=False)]], Field(min_length=1, max_length=6)]
    principal: Annotated[str, Field(max_length=200, pattern=r"^[^:]+$")] | None = None
    expires_in_seconds: Annotated[float, Field(ge=1, le=_SECONDS_MAX)] | None = None


class RotateBody(Wire):
    """For how long the old token still opens what the new one does."""

    overlap_seconds: Annotated[float, Field(ge=0, le=30 * 86400)] = 3600


async def authenticator_of(request: Request) -> Authenticator:
    """Return what believes tokens, so that it may stop believing one."""
    return cast("Authenticator", request.app.state.authenticator)


AuthenticatorDep = Annotated[Authenticator, Depends(authenticator_of)]


def _shown(token: ApiToken) -> dict[str, Any]:
    return {
        "token_id": str(token.token_id),
        "name": token.name,
        "prefix": token.prefix,
        "principal": token.principal,
        "roles": sorted(token.roles),
        "state": token.state,
        "created_at": time_text(token.created_at),
        "created_by": token.created_by,
        "expires_at": time_text(token.expires_at),
        "last_used_at": time_text(token.last_used_at),
        "revoked_at": time_text(token.revoked_at),
        "replaces": str(token.replaces) if token.replaces else None,
    }


def _shown_once(issued: Issued, response: Response) -> dict[str, Any]:
    response.headers["Cache-Control"] = "no-store"
    return _shown(issued.token) | {"token": issued.secret}


@router.post("/tokens", status_code=201)
async def create(body: TokenBody, scope: ScopeDep, response: Response) -> dict[str, Any]:
    """Make a token of this tenant. `token` is in this answer and never again."""
    draft = service.draft_of(body.name, body.principal, body.roles, body.expires_in_seconds)
    issued = await scope.transact(
        lambda connection: service.create(AccessStore(connection), scope.caller, draft)
    )
    return _shown_once(issued, response)


@router.get("/tokens")
async def tokens(
    scope: ScopeDep, *, everything: Annotated[bool, Query(alias="all")] = False
) -> dict[str, Any]:
    """List the tokens of this tenant that are in force, and with `all` those that were."""
    found = await scope.transact(
        lambda connection: AccessStore(connection).tokens(everything=everything)
    )
    return {"tokens": [_shown(token) for token in found]}


@router.post("/tokens/{token_id}/revoke")
async def revoke(
    token_id: UUID, scope: ScopeDep, authenticator: AuthenticatorDep
) -> dict[str, Any]:
    """End a token, here at once and on every other server within a few seconds."""
    token = await scope.transact(
        lambda connection: service.revoke(AccessStore(connection), scope.caller, token_id)
    )
    authenticator.forget(token_id)
    return _shown(token)


@router.post("/tokens/{token_id}/rotate", status_code=201)
async def rotate(
    token_id: UUID,
    body: RotateBody,
    scope: ScopeDep,
    response: Response,
    authenticator: AuthenticatorDep,
) -> dict[str, Any]:
    """Make a token's successor, for the same principal and roles, and let the old one expire.

    `token` is in this answer and never again.
    """
    issued = await scope.transact(
        lambda connection: service.rotate(
            AccessStore(connection),
            scope.caller,
            token_id,
            overlap=timedelta(seconds=body.overlap_seconds),
        )
    )
    authenticator.forget(token_id)
    return _shown_once(issued, response)
