"""What goes over the wire: each function builds one request.

Pure: a request is a value. Nothing here opens a connection, waits, or knows what time it is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Required, TypeAlias, TypedDict, Unpack, cast
from urllib.parse import quote, urlencode, urlsplit

from tallystick.canonical import Json, MalformedJson, canonical_object, check_json
from tallystick.errors import (
    InvalidArguments,
    InvalidContract,
    InvalidRequest,
    InvalidResult,
    Refusal,
    Unauthenticated,
)
from tallystick.tool_contract import Contract, ToolReference

URL_VARIABLE: Final = "TALLYSTICK_URL"
TOKEN_VARIABLE: Final = "TALLYSTICK_TOKEN"
PAGE_MAX: Final = 500
"""The most that the service lists at once."""

Document = dict[str, Json]
Publishable: TypeAlias = Contract | Mapping[str, Json]
"""A contract, or the document of one."""
EvidenceGiven: TypeAlias = Literal["applied", "absent", "in_progress", "rejected", "contradicts"]
"""What the provider was seen to say of an effect: `docs/evidence.md` has what each does."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the registry is, and what to show it. The token stays out of the ``repr``."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, before anyone sends it. Asking the same one again changes nothing."""

    method: Literal["GET", "POST", "PUT"]
    path: str
    body: Mapping[str, Json] | None = field(default=None, repr=False)

    def content(self) -> bytes | None:
        """Return the body in bytes, the same bytes each time."""
        if self.body is None:
            return None
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Claim:
    """Who wants to run an effect. The nonce lets a lost answer be asked for again."""

    worker_id: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker saw of its effect. ``error`` is a code and a sentence."""

    outcome: Literal["succeeded", "failed", "unknown"]
    result: Json = field(default=None, repr=False)
    error: tuple[str, str] | None = None
    provider_reference: str | None = None
    not_sent: bool = False


class EffectTerms(TypedDict, total=False):
    """Which effect a call is, and on what terms it is planned.

    Attributes:
        run: The caller's name for the run. Required.
        effect: The caller's name for the effect in the run. Without one, the contract's identity
            fields and ``occurrence`` tell effects apart. Never a transport's or a model's id.
        occurrence: Which of several equal calls in the run this is, counted from 1.
        key: The caller's idempotency key, unique in the tenant.
        lease: The lease of a `Resolution`, for a plan made before a migration began.
        deadline_seconds: How long the plan may wait for its dispatch.
        origin: ``queue`` for work that an outside queue brings; ``look_up`` for a read of the
            runtime's own, by which it learns who owns something and which no model is shown;
            ``runtime`` if not said.
    """

    run: Required[str]
    effect: str | None
    occurrence: int | None
    key: str | None
    lease: str | None
    deadline_seconds: float | None
    origin: Literal["runtime", "queue", "look_up"] | None


def endpoint(url: str | None, token: str | None, environment: Mapping[str, str]) -> Endpoint:
    """Return where to send requests, from arguments or else from the environment.

    Raises:
        InvalidRequest: There is no URL, or it is not ``http(s)://host[:port][/path]``.
        Unauthenticated: There is no token, or it cannot stand in a header.
    """
    url = (url or environment.get(URL_VARIABLE, "")).strip().rstrip("/")
    token = (token or environment.get(TOKEN_VARIABLE, "")).strip()
    if not _is_origin(url):
        raise InvalidRequest(f"Pass url=, or set {URL_VARIABLE}, as http(s)://host[:port].")
    # An HTTP library quotes a header that it cannot send: a bad token must not get that far.
    if not token or not all("!" <= character <= "~" for character in token):
        raise Unauthenticated(f"Pass token=, or set {TOKEN_VARIABLE}, in printable ASCII.")
    return Endpoint(url, token)


def resolve_request(reference: ToolReference) -> Request:
    """Ask whether a tuple holds."""
    return Request("POST", _path("resolve"), reference.to_json())


def contract_request(name: str, version: str) -> Request:
    """Ask for one published version."""
    return Request("GET", _path("contracts", name, version))


def contracts_request(name: str | None) -> Request:
    """Ask which versions are published, of one tool or of all."""
    query = "" if name is None else "?" + urlencode({"name": name})
    return Request("GET", _path("contracts") + query)


def publish_request(contract: Publishable, reviewer: str | None, reason: str | None) -> Request:
    """Publish a contract, signed off by a reviewer where one is given.

    Raises:
        InvalidContract: The document is not JSON.
        InvalidRequest: A reviewer without a reason, or a reason without a reviewer.
    """
    if (reviewer is None) != (reason is None):
        raise InvalidRequest("A review is a reviewer and a reason together.", pointer="/review")
    document = contract.document if isinstance(contract, Contract) else contract
    body: Document = {"document": _checked(dict(document), InvalidContract)}
    if reviewer is not None:
        body["review"] = {"reviewer": reviewer, "reason": reason}
    return Request("POST", _path("contracts"), body)


def effect_request(
    reference: ToolReference,
    arguments: Mapping[str, Json],
    claim: Claim | None,
    **terms: Unpack[EffectTerms],
) -> Request:
    """Plan an effect and, with a claim, dispatch it."""
    given = cast("Document", {name: term for name, term in terms.items() if term is not None})
    values = _checked(dict(arguments), InvalidArguments)
    assert isinstance(values, dict)
    body = given | {"tool": reference.to_json(), "arguments": canonical_object(values)}
    return Request("POST", _path("effects"), body | _dispatch_member(claim))


def dispatch_request(effect_id: str, claim: Claim, reference: ToolReference | None) -> Request:
    """Dispatch an effect that is planned."""
    body: Document = {"worker_id": claim.worker_id, "nonce": claim.nonce}
    if reference is not None:
        body["tool"] = reference.to_json()
    return Request("POST", _path("effects", effect_id, "dispatch"), body)


def outcome_request(effect_id: str, worker_id: str, fence: int, report: Report) -> Request:
    """Report an outcome. The fence makes the same report again harmless.

    Raises:
        InvalidResult: The result is not JSON; nothing was reported.
    """
    body: Document = {"worker_id": worker_id, "fence": fence, "outcome": report.outcome}
    if report.outcome == "succeeded":
        body["result"] = _checked(report.result, InvalidResult)
    if report.error is not None:
        body["error"] = {"code": report.error[0], "message": report.error[1]}
    if report.provider_reference is not None:
        body["provider_reference"] = report.provider_reference
    if report.not_sent:
        body["not_sent"] = True
    return Request("POST", _path("effects", effect_id, "outcome"), body)


def cancel_request(effect_id: str, reason: str) -> Request:
    """Cancel an effect that nobody has begun."""
    return Request("POST", _path("effects", effect_id, "cancel"), {"reason": reason})


def retry_request(effect_id: str, reason: str, evidence: str | None) -> Request:
    """Release a quarantined effect for another attempt."""
    body: Document = {"reason": reason}
    if evidence is not None:
        body["evidence"] = evidence
    return Request("POST", _path("effects", effect_id, "retry"), body)


def evidence_request(
    effect_id: str,
    answer: EvidenceGiven,
    detail: str,
    observed_at: datetime,
    provider_reference: str | None,
) -> Request:
    """Say what the provider was seen to have.

    Raises:
        InvalidRequest: The time has no offset from UTC.
    """
    if observed_at.tzinfo is None:
        raise InvalidRequest("Say in which zone it was observed.", pointer="/observed_at")
    body: Document = {"answer": answer, "detail": detail, "observed_at": observed_at.isoformat()}
    if provider_reference is not None:
        body["provider_reference"] = provider_reference
    return Request("POST", _path("effects", effect_id, "evidence"), body)


def show_request(effect_id: str) -> Request:
    """Ask for an effect and its history."""
    return Request("GET", _path("effects", effect_id))


def approval_request(approval_id: str) -> Request:
    """Ask for an approval and its history."""
    return Request("GET", _path("approvals", approval_id))


def begin_run_request(run: str, subject: Mapping[str, str | int]) -> Request:
    """Say on whose behalf a run acts."""
    values = _checked(dict(subject), InvalidRequest)
    return Request("PUT", _path("runs", run), {"subject": values})


def run_request(run: str, after: str | None) -> Request:
    """Ask for a page of a run's trace."""
    query = {"limit": PAGE_MAX} | ({} if after is None else {"after": after})
    return Request("GET", _path("runs", run) + "?" + urlencode(query))


def heartbeat_request(worker_id: str, label: str) -> Request:
    """Say that a worker is alive."""
    return Request("PUT", _path("workers", worker_id, "heartbeat"), {"label": label})


def _is_origin(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that hold no IPv6 address, or a port that is no number
        return False
    return is_whole and parts.scheme in {"http", "https"} and "@" not in parts.netloc


def _path(*segments: str) -> str:
    for segment in segments:
        if segment in {"", ".", ".."}:  # would name another resource once the URL is normalised
            raise InvalidRequest(f"{segment!r} names nothing here.")
    return "/v1/" + "/".join(quote(segment, safe="") for segment in segments)


def _checked(value: object, refusal: type[Refusal]) -> Json:
    try:
        return check_json(value)
    except MalformedJson as fault:
        raise refusal(fault.detail, pointer=fault.pointer) from None


def _dispatch_member(claim: Claim | None) -> Document:
    if claim is None:
        return {}
    return {"dispatch": {"worker_id": claim.worker_id, "nonce": claim.nonce}}
