"""Errors as RFC 9457 problem documents, and the only table of HTTP statuses."""

import logging
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from tallystick.canonical import pointer_join
from tallystick.errors import InvalidRequest, NotFound, Outage, Refusal

_log = logging.getLogger("tallystick.server")

STATUS: Final = {
    "unauthenticated": 401,
    "capability_not_granted": 403,
    "forbidden": 403,
    "needs_human": 403,
    "policy_blocked": 403,
    "not_found": 404,
    "tool_contract_not_found": 404,
    "too_slow": 408,
    "adapter_ambiguous": 409,
    "approval_expired": 409,
    "approval_rejected": 409,
    "approval_stale": 409,
    "contract_exists": 409,
    "contract_in_use": 409,
    "contract_migrating": 409,
    "contract_retired": 409,
    "contract_suspended": 409,
    "credential_policy_changed": 409,
    "effect_class_mismatch": 409,
    "effect_conflict": 409,
    "effect_not_retryable": 409,
    "fence_stale": 409,
    "illegal_transition": 409,
    "lease_expired": 409,
    "mixed_versions": 409,
    "name_reserved": 409,
    "review_required": 409,
    "signature_required": 409,
    "token_conflict": 409,
    "tool_schema_drift": 409,
    "too_large": 413,
    "invalid_arguments": 422,
    "invalid_contract": 422,
    "invalid_policy": 422,
    "invalid_request": 422,
    "invalid_result": 422,
    "signature_invalid": 422,
    "budget_exhausted": 429,
    "rate_limited": 429,
    "registry_unavailable": 503,
    "service_unavailable": 503,
    "service_timeout": 504,
}


class Problem(BaseModel):
    """A refusal.

    A stable code, a sentence, whether trying again can help, and facts for programs.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    pointer: str | None = None
    facts: dict[str, Any] | None = None


class _Answer(JSONResponse):
    media_type = "application/problem+json"


def problem(error: Refusal | Outage, *, status: int | None = None) -> JSONResponse:
    """Answer an error as a problem document."""
    status = status or STATUS[error.code]
    body = Problem(
        type=f"urn:tallystick:problem:{error.code}",
        title=(type(error).__doc__ or "").strip().partition("\n")[0],
        status=status,
        detail=error.detail,
        code=error.code,
        retryable=error.retryable,
        pointer=error.pointer,
        facts=error.facts or None,
    )
    return _Answer(body.model_dump(exclude_none=True), status, _headers(error, status))


def _headers(error: Refusal | Outage, status: int) -> dict[str, str]:
    """Return what RFC 9110 wants beside a status."""
    match status:
        case 401:
            return {"WWW-Authenticate": "Bearer"}
        case 408 | 413:
            return {"Connection": "close"}  # the rest of the body is not waited for
        case 429 if "retry_after_seconds" in error.facts:
            return {"Retry-After": str(error.facts["retry_after_seconds"])}
        case _:
            return {}


def install(app: FastAPI) -> None:
    """Make every error of the application a problem document."""
    app.add_exception_handler(Refusal, _coded)
    app.add_exception_handler(Outage, _coded)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _defect)


def _coded(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal | Outage)
    return problem(error)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    # Only the place and the rule are told: the value may be a secret.
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place, *path = first["loc"]
    where = pointer_join(*path) if place == "body" else ""
    named = "" if place == "body" else f" in {place} parameter {'.'.join(map(str, path))}"
    return problem(InvalidRequest(f"{first['msg']}{named}.", pointer=where or None))


def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:  # noqa: PLR2004 - RFC 9110
        return problem(NotFound("There is nothing at this address."))
    answer = problem(InvalidRequest(f"{error.detail}."), status=error.status_code)
    answer.headers.update(error.headers or {})  # a 405 says what is allowed
    return answer


def _defect(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    body = Problem(
        type="urn:tallystick:problem:internal_error",
        title="The service has a defect.",
        status=500,
        detail="The service could not finish the request; its log says why.",
        code="internal_error",
        retryable=False,
    )
    return _Answer(body.model_dump(exclude_none=True), 500)
