"""What comes back over the wire: each function reads one kind of answer into a value.

Pure: an answer is bytes. Whatever is not an answer of the registry's is an outage of the registry.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar, cast

from tallystick._requests import Document, Request
from tallystick.canonical import Json, MalformedJson, parse_json
from tallystick.errors import (
    InvalidContract,
    InvalidRequest,
    Outage,
    Refusal,
    RegistryUnavailable,
    ToolSchemaDrift,
    error_for,
)
from tallystick.tool_contract import Contract, ToolReference, Version

ANSWER_DEPTH_MAX: Final = 256
"""Answers wrap values that are themselves as deep as a request's may be."""
PASSING_STATUSES: Final = frozenset({429, 502, 503, 504})

_OBJECT: Final = cast("type[Document]", dict)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, as it came."""

    status: int
    content_type: str
    body: bytes = field(repr=False)
    retry_after: str = ""

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case."""
        return self.content_type.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The permission to send, given to one worker until the lease ends.

    Attributes:
        fence: The number that the worker's report must carry.
        attempt: Counted from 1.
        lease_seconds: How much of the lease was left, by the database's clock.
        idempotency_key: The provider's key, where the contract has one.
        idempotency_header: The header that takes it, where the contract names one.
        arguments: What to send, the same in every attempt.
    """

    fence: int
    attempt: int
    lease_seconds: float
    idempotency_key: str | None
    idempotency_header: str | None
    arguments: Document = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an effect ended, as the ledger has it."""

    status: str
    result: Json = field(repr=False)
    error: tuple[str, str] | None
    provider_reference: str | None


@dataclass(frozen=True, slots=True)
class PolicyRevision:
    """The revision of a policy that a call is held to."""

    policy: str
    revision: int


@dataclass(frozen=True, slots=True)
class ApprovalEntry:
    """A person's word on one effect, as the ledger has it.

    Attributes:
        approval_id: The effect's own id: an effect has one approval at most.
        status: pending, approved, rejected, expired, stale or consumed.
        question: Why a person is asked.
        rule: The rule of the policy that asks; None where the contract does.
        expires_at: Until when it can be given and used.
        decided_by: Who decided, if anyone did.
        reason: What the person said to it.
        document: The whole answer; `Client.approval` has the arguments and every step there.
    """

    approval_id: str
    status: str
    question: str
    rule: str | None
    expires_at: datetime
    decided_by: str | None
    reason: str | None
    document: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True, slots=True)
class EffectEntry:
    """One effect, as the ledger has it.

    Attributes:
        effect_id: ``<run uuid>.<number>``.
        state: PLANNED, DISPATCHED, UNKNOWN, SUCCEEDED, ...
        reason: Why it is in that state, where somebody or something said so.
        outcome: How it ended, if it did.
        dispatch: The permission to send, only if this answer gives it.
        policy: What it is held to; None where no policy was in force.
        approval: A person's word on it; None where nobody was asked.
        document: The whole answer; `Client.show` has events, attempts and evidence there.
    """

    effect_id: str
    state: str
    reason: str | None
    outcome: Outcome | None
    dispatch: Dispatch | None
    policy: PolicyRevision | None
    approval: ApprovalEntry | None
    document: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RunTrace:
    """A run: on whose behalf it acts, and each of its calls, oldest first.

    Attributes:
        run: The caller's name for it.
        run_id: The service's.
        subject: On whose behalf it acts; None where nobody said.
        entries: What came of each call: ``kind`` is ``effect`` or ``refusal``.
    """

    run: str
    run_id: str
    subject: Mapping[str, Json] | None = field(repr=False)
    entries: tuple[Mapping[str, Json], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ContractEntry:
    """One published version: its contract, its lifecycle state, and the tuple to present."""

    state: str
    suspended: bool
    reference: ToolReference
    contract: Contract


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """One line of the list of contracts: which version it is, and how it stands."""

    name: str
    version: Version
    state: str
    suspended: bool
    schema_hash: str
    contract_digest: str


@dataclass(frozen=True, slots=True)
class Publication:
    """A contract that is published.

    Attributes:
        entry: The published version, with the tuple to present.
        is_new: Whether it was not there before. A request that is sent again, since its answer was
            lost, finds what it has published.
        equivalent_to: The versions of the tool that are proven to mean the same, lowest first.
        warnings: What a person should know of it, each with ``code``, ``path`` and ``detail``.
    """

    entry: ContractEntry
    is_new: bool
    equivalent_to: tuple[str, ...]
    warnings: tuple[Mapping[str, Json], ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A tuple that the registry accepts, and a lease on that answer for cached plans."""

    contract: Contract
    reference: ToolReference
    lease: str = field(repr=False)
    lease_expires_at: datetime


def is_passing(answer: Answer) -> bool:
    """Whether the same request, asked again soon, may well get another answer."""
    if answer.status not in PASSING_STATUSES:
        return False
    problem = _problem(answer)
    return problem is None or problem.get("retryable") is True


def read_document(request: Request, answer: Answer) -> Document:
    """Return the JSON object that a good answer holds.

    Raises:
        Refusal: The class of the code in the service's problem document (RFC 9457).
        RegistryUnavailable: The answer is not one that the service gives.
    """
    problem = _problem(answer)
    if problem is not None:
        raise _error_of(problem)
    good = answer.status in {200, 201} and answer.media_type == "application/json"
    document = _parsed(answer) if good else None
    if document is None:
        raise RegistryUnavailable(
            f"{request.method} {request.path} was answered with status {answer.status} and "
            f"content of type {answer.media_type or 'none'}, which is no answer of the registry."
        )
    return document


def read_effect(document: Document) -> EffectEntry:
    """Return the effect that an answer describes."""
    return EffectEntry(
        effect_id=_member(document, "effect_id", str),
        state=_member(document, "state", str),
        reason=_optional(document, "reason", str),
        outcome=_outcome(_object(document, "outcome")),
        dispatch=_dispatch(_object(document, "dispatch")),
        policy=_policy(_object(document, "policy")),
        approval=_approval(_object(document, "approval")),
        document=document,
    )


def read_approval(document: Document) -> ApprovalEntry:
    """Return the approval that an answer describes."""
    return ApprovalEntry(
        approval_id=_member(document, "approval_id", str),
        status=_member(document, "status", str),
        question=_member(document, "question", str),
        rule=_optional(document, "rule", str),
        expires_at=_time(document, "expires_at"),
        decided_by=_optional(document, "decided_by", str),
        reason=_optional(document, "reason", str),
        document=document,
    )


def read_trace(document: Document) -> tuple[RunTrace, str | None]:
    """Return a part of a run's trace, and where the next part begins, if there is one."""
    trace = RunTrace(
        run=_member(document, "run", str),
        run_id=_member(document, "run_id", str),
        subject=_object(document, "subject"),
        entries=tuple(_list(document, "entries", _OBJECT)),
    )
    return trace, _optional(document, "next", str)


def read_contract(document: Document) -> ContractEntry:
    """Return the published version that an answer describes."""
    try:
        reference = ToolReference.from_json(document.get("reference"))
    except InvalidRequest:
        raise _unreadable("reference") from None
    return ContractEntry(
        state=_member(document, "state", str),
        suspended=_member(document, "suspended", bool),
        reference=reference,
        contract=Contract.parse(document.get("document")),
    )


def read_versions(document: Document) -> list[PublishedVersion]:
    """Return the published versions that an answer lists."""
    return [_version(each) for each in _list(document, "contracts", _OBJECT)]


def read_publication(document: Document) -> Publication:
    """Return what came of publishing."""
    return Publication(
        entry=read_contract(document),
        is_new=_member(document, "published", bool),
        equivalent_to=tuple(_list(document, "equivalent_to", str)),
        warnings=tuple(_list(document, "warnings", _OBJECT)),
    )


def read_resolution(document: Document, reference: ToolReference) -> Resolution:
    """Return what the registry says to a tuple.

    Raises:
        ToolSchemaDrift: What came back has another hash: something between rewrites documents.
    """
    entry = _object(document, "contract") or {}
    contract = Contract.parse(entry.get("document"))
    if contract.schema_hash != reference.schema_hash:
        raise ToolSchemaDrift("The contract that came back has not the hash that was asked for.")
    expires_at = _time(document, "lease_expires_at")
    return Resolution(contract, reference, _member(document, "lease", str), expires_at)


def _problem(answer: Answer) -> Document | None:
    if answer.media_type != "application/problem+json":
        return None
    problem = _parsed(answer)
    return problem if problem and isinstance(problem.get("code"), str) else None


def _parsed(answer: Answer) -> Document | None:
    try:
        value = parse_json(answer.body, depth_max=ANSWER_DEPTH_MAX)
    except MalformedJson:
        return None
    return value if isinstance(value, dict) else None


def _error_of(problem: Document) -> Refusal | Outage:
    detail = problem.get("detail") or problem.get("title") or problem["code"]
    return error_for(_member(problem, "code", str))(
        str(detail),
        pointer=_optional(problem, "pointer", str),
        facts=_object(problem, "facts"),
    )


def _version(document: Document) -> PublishedVersion:
    try:
        version = Version.parse(_member(document, "version", str))
    except InvalidContract:
        raise _unreadable("version") from None
    return PublishedVersion(
        name=_member(document, "name", str),
        version=version,
        state=_member(document, "state", str),
        suspended=_member(document, "suspended", bool),
        schema_hash=_member(document, "schema_hash", str),
        contract_digest=_member(document, "contract_digest", str),
    )


def _outcome(document: Document | None) -> Outcome | None:
    if document is None:
        return None
    error = _object(document, "error")
    return Outcome(
        status=_member(document, "status", str),
        result=document.get("result"),
        error=(_member(error, "code", str), _member(error, "message", str)) if error else None,
        provider_reference=_optional(document, "provider_reference", str),
    )


def _policy(document: Document | None) -> PolicyRevision | None:
    if document is None:
        return None
    return PolicyRevision(_member(document, "policy", str), _member(document, "revision", int))


def _approval(document: Document | None) -> ApprovalEntry | None:
    return None if document is None else read_approval(document)


def _dispatch(document: Document | None) -> Dispatch | None:
    if document is None or document.get("owned") is not True:
        return None
    return Dispatch(
        fence=_member(document, "fence", int),
        attempt=_member(document, "attempt", int),
        lease_seconds=_member(document, "lease_seconds", int, float),
        idempotency_key=_optional(document, "idempotency_key", str),
        idempotency_header=_optional(_object(document, "idempotency") or {}, "header", str),
        arguments=_object(document, "arguments") or {},
    )


def _member(document: Document, name: str, *kinds: type[T]) -> T:
    value = document.get(name)
    if not isinstance(value, kinds):
        raise _unreadable(name)
    return value


def _time(document: Document, name: str) -> datetime:
    try:
        return datetime.fromisoformat(_member(document, name, str))
    except ValueError:
        raise _unreadable(name) from None


def _optional(document: Document, name: str, kind: type[T]) -> T | None:
    return None if document.get(name) is None else _member(document, name, kind)


def _object(document: Document, name: str) -> Document | None:
    value = document.get(name)
    if value is not None and not isinstance(value, dict):
        raise _unreadable(name)
    return value


def _list(document: Document, name: str, kind: type[T]) -> list[T]:
    values = document.get(name)
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise _unreadable(name)
    return cast("list[T]", values)


def _unreadable(name: str) -> RegistryUnavailable:
    return RegistryUnavailable(f"The answer's member {name!r} has not the documented form.")
