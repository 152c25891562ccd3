"""The registry over HTTP: routes and wire models, nothing else."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from kernel.http import (
    NOT_MODIFIED,
    WAS_THERE,
    ScopeDep,
    StrictRoute,
    Wire,
    allow,
    in_thread,
    tagged,
)
from kernel.roles import Permission
from kernel.scope import Connection, Scope
from kernel.wire import time_text
from registry import service
from registry.entry import Credential, Entry
from registry.http_keys import SignatureBody, signatures_shown
from registry.publication import Comparisons, Review, compare_with
from registry.signing import Signature
from registry.store import RegistryStore
from registry.store_keys import KeyStore
from tallystick.canonical import Json
from tallystick.compatibility.budget import STEPS
from tallystick.compatibility.contracts.documents import (
    BareSchema,
    compare_documents,
    read_document,
)
from tallystick.compatibility.contracts.flow import Boundary
from tallystick.compatibility.contracts.review import warnings_of
from tallystick.compatibility.verdict import Producer
from tallystick.errors import InvalidRequest, RateLimited, Refusal
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract, ToolReference

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["registry"])

Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]


class ReviewBody(Wire):
    """A semantic change record: who reviewed a change, and why it keeps its meaning."""

    reviewer: Name
    reason: Text


class PublishBody(Wire):
    """A contract document to publish."""

    document: dict[str, Any]
    review: ReviewBody | None = None
    signatures: Annotated[list[SignatureBody], Field(default_factory=list, max_length=16)]


class ReferenceBody(Wire):
    """The tuple that a runtime presents. None of it may come from a model's output."""

    name: str
    version: str
    schema_hash: str
    capabilities: list[str]
    effect_class: str
    credential_version: int

    def reference(self, *, at: str = "") -> ToolReference:
        """Return the tuple as a value; ``at`` points to where it stands in its request.

        Raises InvalidRequest for a part that has not its form.
        """
        try:
            return ToolReference.from_json(self.model_dump())
        except InvalidRequest as fault:
            raise InvalidRequest(fault.detail, pointer=f"{at}{fault.pointer}") from fault


Compared = Annotated[
    Annotated[str, Field(max_length=200, examples=["billing.send_invoice@1.0"])]
    | dict[str, Any]
    | bool,
    Field(description="A published version as NAME@VERSION, a contract document, or a JSON Schema"),
]


class CompareBody(Wire):
    """What to compare, and who is taken to write the values."""

    old: Compared
    new: Compared
    producer: Annotated[
        Literal["declared", "any"],
        Field(description="Whose verdict it is: both are told, with their evidence."),
    ] = "declared"


class NameBody(Wire):
    """The name of a new credential slot."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class ReasonBody(Wire):
    """Why something is done."""

    reason: Annotated[str, Field(max_length=2000)] = ""


class GrantBody(Wire):
    """A capability for a principal."""

    principal: Name
    capability: Annotated[
        str,
        Field(max_length=256, pattern=r"^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+:[A-Za-z0-9_.{}-]+$"),
    ]


def summary(entry: Entry) -> dict[str, Any]:
    """Render one line of the list of contracts."""
    contract = entry.contract
    return {
        "name": contract.name,
        "version": str(contract.version),
        "kind": contract.kind,
        "effect_class": contract.effect_class,
        "state": entry.state,
        "suspended": entry.suspended,
        "schema_hash": contract.schema_hash,
        "contract_digest": contract.contract_digest,
        "credential": contract.credential,
        "credential_version": entry.credential_bound,
        "published_at": time_text(entry.published_at),
        # Who works for another tenant is that tenant's own business.
        "published_by": entry.published_by if entry.owner is None else None,
        "owner": entry.owner,
    }


def whole(entry: Entry, tenant: str) -> dict[str, Any]:
    """Render one contract with its document and the tuple to present."""
    return summary(entry) | {
        "prompt_hash": entry.contract.prompt_hash,
        "capabilities": sorted(entry.contract.capabilities_for(tenant)),
        "credential_current": entry.credential_current,
        "closed_at": time_text(entry.closed_at),
        "document": dict(entry.contract.document),
        "reference": entry.reference(tenant).to_json(),
    }


@router.post(
    "/contracts",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.PUBLISH)],
)
async def publish(body: PublishBody, scope: ScopeDep, response: Response) -> dict[str, Any]:
    """Publish a contract. 201 when it is new, 200 when the same document is published already.

    A change under one major version needs a proof that old calls and new results stay good, or a
    review. `equivalent_to` names the versions that are proven to mean the same.
    """
    review = Review(body.review.reviewer, body.review.reason) if body.review else None
    signatures = [each.presented() for each in body.signatures]
    # In a thread, as every comparison below: a hostile schema takes its bounded time without
    # stopping the others.
    contract, warnings = await in_thread(scope.caller, _examined, body.document)
    comparisons: Comparisons = {}

    async def attempt(connection: Connection) -> service.Publication | list[Contract]:
        store, keys = RegistryStore(connection), KeyStore(connection)
        return await service.publish(
            store, keys, scope.caller, contract, review, signatures, comparisons
        )

    # Again only for what was published since: whoever waits here saw another one come through.
    while isinstance(found := await scope.transact(attempt), list):
        more = await in_thread(scope.caller, compare_with, contract, found)
        comparisons = {**comparisons, **more}
    response.status_code = 201 if found.is_new else 200
    return whole(found.entry, scope.caller.tenant) | {
        "published": found.is_new,
        "equivalent_to": found.equivalent_to,
        "warnings": warnings,
    }


def _examined(document: dict[str, Any]) -> tuple[Contract, list[dict[str, Json]]]:
    contract = Contract.parse(document)
    return contract, [each.to_json() for each in warnings_of(Boundary.of(contract), STEPS)]


@router.post("/compare", dependencies=[allow(Permission.READ_CONTRACTS)])
async def compare(body: CompareBody, scope: ScopeDep) -> dict[str, Any]:
    """Compare two contracts, or two JSON Schemas.

    Three answers, each with its evidence: `compatible` with a proof, `incompatible` with a value
    that one side may write and the other refuses, `undecided` with what stopped the analysis.
    `verdict` is about those who stay with `old`: their calls, and the results that they read.
    """
    old = await _compared(body.old, scope, at="/old")
    new = await _compared(body.new, scope, at="/new")
    return await in_thread(scope.caller, compare_documents, old, new, Producer(body.producer))


async def _compared(given: Compared, scope: Scope, *, at: str) -> Contract | BareSchema:
    try:
        if not isinstance(given, str):
            return await in_thread(scope.caller, read_document, given)
        entry = await scope.transact(
            lambda connection: service.find_named(RegistryStore(connection), given)
        )
    except RateLimited:
        raise
    except Refusal as fault:
        # A name is one text, and has no parts to point at.
        place = "" if isinstance(given, str) else fault.pointer or ""
        raise type(fault)(fault.detail, pointer=at + place, facts=fault.facts) from fault
    return entry.contract


@router.get("/contracts", responses=NOT_MODIFIED, dependencies=[allow(Permission.READ_CONTRACTS)])
async def contracts(
    request: Request,
    scope: ScopeDep,
    name: str | None = None,
    state: Annotated[Lifecycle | None, Query()] = None,
) -> Response:
    """List the published versions, with an entity tag.

    Those that other tenants share are among them; `owner` says who does.
    """

    async def work(connection: Connection) -> tuple[list[Entry], dict[UUID, list[Signature]]]:
        found = await service.usable(RegistryStore(connection), name)
        asked = [entry for entry in found if state is None or entry.state is state]
        signatures = await KeyStore(connection).signatures([each.contract_id for each in asked])
        return asked, signatures

    entries, signatures = await scope.transact(work)
    shown = [summary(each) | signatures_shown(signatures[each.contract_id]) for each in entries]
    return tagged(request, {"contracts": shown})


@router.get(
    "/contracts/{name}/{version}",
    responses=NOT_MODIFIED,
    dependencies=[allow(Permission.READ_CONTRACTS)],
)
async def contract(request: Request, name: str, version: str, scope: ScopeDep) -> Response:
    """Show one version: its document, its state, and the tuple to present."""

    async def work(connection: Connection) -> tuple[Entry, list[Signature]]:
        entry = await service.find(RegistryStore(connection), name, version)
        signatures = await KeyStore(connection).signatures([entry.contract_id])
        return entry, signatures[entry.contract_id]

    entry, signatures = await scope.transact(work)
    return tagged(request, whole(entry, scope.caller.tenant) | signatures_shown(signatures))


@router.post("/resolve", dependencies=[allow(Permission.READ_CONTRACTS)])
async def resolve(body: ReferenceBody, scope: ScopeDep) -> dict[str, Any]:
    """Resolve a tuple to its contract and a lease, or refuse it with exactly one code."""
    reference = body.reference()
    resolution = await scope.transact(
        lambda connection: service.resolve(
            RegistryStore(connection),
            scope.caller,
            reference,
            scope.keys,
            lease_seconds=scope.lease_seconds_max,
        )
    )
    return {
        "contract": whole(resolution.entry, scope.caller.tenant),
        "capabilities": sorted(resolution.capabilities),
        "lease": resolution.lease,
        "lease_expires_at": time_text(resolution.lease_expires_at),
    }


@router.post(
    "/contracts/{name}/{version}/attest", dependencies=[allow(Permission.MANAGE_CREDENTIALS)]
)
async def attest(name: str, version: str, body: ReasonBody, scope: ScopeDep) -> dict[str, Any]:
    """Bind a contract to its credential's current version, after a review of the rotation."""
    entry = await scope.transact(
        lambda connection: service.attest(
            RegistryStore(connection), scope.caller, name, version, body.reason
        )
    )
    return {
        "name": entry.contract.name,
        "version": str(entry.contract.version),
        "credential": entry.contract.credential,
        "credential_version": entry.credential_bound,
    }


@router.post("/credentials", status_code=201, dependencies=[allow(Permission.MANAGE_CREDENTIALS)])
async def create_credential(body: NameBody, scope: ScopeDep) -> dict[str, Any]:
    """Make a credential slot at version 1. The secret itself never comes here."""
    made = await scope.transact(
        lambda connection: service.create_credential(
            RegistryStore(connection), scope.caller, body.name
        )
    )
    return _slot(made)


@router.post("/credentials/{name}/rotate", dependencies=[allow(Permission.MANAGE_CREDENTIALS)])
async def rotate_credential(name: str, body: ReasonBody, scope: ScopeDep) -> dict[str, Any]:
    """Raise a credential's version; a revoked one is in force again under the new one.

    Work that was planned under the old one is refused from now on.
    """
    rotated = await scope.transact(
        lambda connection: service.rotate_credential(
            RegistryStore(connection), scope.caller, name, body.reason
        )
    )
    return _slot(rotated)


@router.post("/credentials/{name}/revoke", dependencies=[allow(Permission.MANAGE_CREDENTIALS)])
async def revoke_credential(name: str, body: ReasonBody, scope: ScopeDep) -> dict[str, Any]:
    """Take a credential out of force: what is bound to it is refused until it is rotated."""
    revoked = await scope.transact(
        lambda connection: service.revoke_credential(
            RegistryStore(connection), scope.caller, name, body.reason
        )
    )
    return _slot(revoked)


@router.get("/credentials", dependencies=[allow(Permission.READ_CONTRACTS)])
async def credentials(scope: ScopeDep) -> dict[str, Any]:
    """List the credential slots and their versions."""
    found = await scope.transact(lambda connection: RegistryStore(connection).credentials())
    return {"credentials": [_slot(one) for one in found]}


def _slot(credential: Credential) -> dict[str, Any]:
    return {
        "name": credential.name,
        "version": credential.version,
        "rotated_at": time_text(credential.rotated_at),
        "revoked_at": time_text(credential.revoked_at),
    }


@router.post(
    "/grants",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.MANAGE_GRANTS)],
)
async def grant(body: GrantBody, scope: ScopeDep, response: Response) -> dict[str, Any]:
    """Grant a capability to a principal. 200 when the principal holds it already."""
    is_new = await scope.transact(
        lambda connection: service.grant(
            RegistryStore(connection), scope.caller, body.principal, body.capability
        )
    )
    response.status_code = 201 if is_new else 200
    capability = body.capability.replace("{tenant}", scope.caller.tenant)
    return {"principal": body.principal, "capability": capability, "granted": is_new}


@router.delete("/grants", status_code=204, dependencies=[allow(Permission.MANAGE_GRANTS)])
async def revoke(principal: str, capability: str, scope: ScopeDep) -> None:
    """Take a capability back from a principal."""
    await scope.transact(
        lambda connection: service.revoke(
            RegistryStore(connection), scope.caller, principal, capability
        )
    )


@router.get("/grants", dependencies=[allow(Permission.MANAGE_GRANTS)])
async def grants(scope: ScopeDep, principal: str | None = None) -> dict[str, Any]:
    """List who holds which capability."""
    found = await scope.transact(
        lambda connection: RegistryStore(connection).grants(principal=principal)
    )
    return {
        "grants": [
            {
                "principal": one.principal,
                "capability": one.capability,
                "granted_at": time_text(one.granted_at),
                "granted_by": one.granted_by,
            }
            for one in found
        ]
    }
