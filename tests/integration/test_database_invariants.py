"""What the database refuses the service, whatever the code does: each rule is broken once."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors
from psycopg.sql import SQL, Composed, Identifier, Placeholder
from psycopg.types.json import Jsonb

from audit.record import SEALED, WRITTEN_IN
from audit.seal import Seal, Statement
from kernel.ids import new_uuid7
from kernel.roles import Role
from ledger import quarantine
from ledger.state import CLOSED, OPEN
from ledger.transition import TRANSITIONS
from tests.databases import database

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2999, 1, 1, tzinfo=UTC)
DOCUMENT = "{}"

# --- what the service may do: a grant more or less fails ------------------------------------------

# Into a table whose rows are sealed the service inserts every column but one.
MAY = {
    "api_token": "INSERT",
    "approval": "SELECT INSERT",
    "approval_event": "SELECT INSERT",
    "audit_progress": "SELECT",
    "audit_seal": "SELECT INSERT",
    "budget_pool": "SELECT INSERT",
    "budget_slice": "SELECT INSERT",
    "capability_grant": "SELECT INSERT",
    "contract": "SELECT INSERT",
    "contract_closing": "SELECT INSERT DELETE",
    "contract_content": "SELECT INSERT",
    "contract_share": "SELECT INSERT",
    "contract_share_acceptance": "SELECT INSERT",
    "contract_signature": "SELECT INSERT",
    "contract_state": "SELECT INSERT",
    "credential": "SELECT INSERT",
    "credential_binding": "SELECT INSERT",
    "effect": "SELECT INSERT",
    "effect_attempt": "SELECT INSERT",
    "effect_evidence": "SELECT INSERT",
    "effect_idem": "SELECT INSERT",
    "effect_open": "SELECT INSERT DELETE",
    "effect_outcome": "SELECT INSERT",
    "effect_payload": "SELECT INSERT DELETE",
    "event": "SELECT INSERT",
    "gate_refusal": "SELECT INSERT",
    "legal_transition": "SELECT",
    "listing_progress": "SELECT INSERT",
    "pin": "SELECT INSERT DELETE",
    "policy_assignment": "SELECT INSERT DELETE",
    "policy_head": "SELECT INSERT",
    "policy_revision": "SELECT INSERT",
    "publisher_key": "SELECT INSERT",
    "registry_event": "SELECT INSERT",
    "resolution_event": "SELECT INSERT",
    "run_fact": "SELECT INSERT",
    "run_state": "SELECT INSERT",
    "run_subject": "SELECT INSERT",
    "run_tally": "SELECT INSERT",
    "run_tool": "SELECT INSERT",
    "service_key": "SELECT",
    "signature_requirement": "SELECT INSERT DELETE",
    "tenant": "SELECT",
    "worker_session": "SELECT INSERT",
}
MAY_SELECT = {
    "api_token": "tenant_id token_id name prefix principal roles created_at created_by expires_at"
    " last_used_at revoked_at replaces",
}
MAY_UPDATE = {
    "api_token": "expires_at last_used_at revoked_at",
    "approval": "step status decided_by decided_at reason",
    "budget_pool": "granted most",
    "budget_slice": "policy_revision granted used",
    "capability_grant": "granted_at granted_by revoked_at",
    "contract_share": "shared_at shared_by revoked_at",
    "contract_share_acceptance": "accepted_at accepted_by withdrawn_at",
    "contract_state": "lifecycle suspended changed_at",
    "credential": "version rotated_at revoked_at",
    "credential_binding": "version attested_at attested_by",
    "effect_open": "state fence attempt worker_id nonce due_at first_dispatched_at unknown_since"
    " unaccounted checks reason",
    "listing_progress": "fence due_at since began_at cursor failures listed orphans ignored",
    "pin": "expires_at",
    "policy_assignment": "policy assigned_at assigned_by",
    "policy_head": "revision",
    "publisher_key": "revoked_at revoked_by reason",
    "run_fact": "value number captured_at",
    "run_state": "decisions",
    "run_tally": "dispatched succeeded",
    "worker_session": "label heartbeat_at",
}
MAY_CALL = {
    "audit_position(xid8)",
    "authenticate(bytea)",
    "contract_references(uuid)",
    "current_tenant()",
    "current_timeline()",
    "effects_open()",
    "ensure_partitions(integer)",
    "listings_read()",
    "note_sealed()",
    "run_standing(uuid)",
    "share_of(uuid)",
    "shared_contracts(text,text)",
    "shares_offered()",
    "tenant_named(text)",
    "contracts_due(integer)",
    "tenants_due(integer)",
    "tenants_left_behind(integer)",
    "tenants_listing()",
    "tenants_to_seal()",
    "uuid_at(timestamp with time zone)",
}
BY_THE_DATABASE = {WRITTEN_IN, "timeline"}
OF_NO_TENANT = {"alembic_version", "audit_progress", "legal_transition", "service_key"}
OF_A_TENANT = sorted(MAY.keys() - OF_NO_TENANT)
# What another tenant reads of a contract that is shared with it, and what it says of its use.
SHARED = {"contract", "contract_closing", "contract_content", "contract_state"}
OF_A_USE = {"contract_signature", "credential_binding", "effect", "effect_open", "pin"}
APPEND_ONLY = [
    "approval_event",
    "audit_seal",
    "contract",
    "contract_content",
    "contract_signature",
    "effect",
    "effect_attempt",
    "effect_evidence",
    "effect_idem",
    "effect_outcome",
    "event",
    "gate_refusal",
    "policy_revision",
    "registry_event",
    "resolution_event",
    "run_subject",
    "run_tool",
]

# --- an effect, and what is written of it ---------------------------------------------------------


@dataclass(frozen=True)
class Effect:
    """An effect of a tenant with one contract; nothing of it is written yet."""

    tenant_id: UUID
    contract_id: UUID
    effect_class: str = "IDEMPOTENT"
    run_id: UUID = field(default_factory=new_uuid7)
    number: int = 1


Row = dict[str, Any]
Write = Callable[[psycopg.Connection, Effect], None]


def registry_rows(effect: Effect) -> dict[str, Row]:
    """Return a valid row for each table of the registry, in the order in which they refer."""
    tenant = {"tenant_id": effect.tenant_id}
    contract = tenant | {"contract_id": effect.contract_id}
    digest = "sha256:" + hashlib.sha256(DOCUMENT.encode()).hexdigest()
    return {
        "contract_content": tenant
        | {
            "contract_digest": digest,
            "schema_hash": digest,
            "prompt_hash": digest,
            "document": DOCUMENT,
        },
        "contract": contract
        | {
            "name": "billing.send_invoice",
            "version": "1.0.0",
            "contract_digest": digest,
            "published_by": "admin",
        },
        "contract_state": contract,
        "contract_closing": contract | {"closed_by": "admin", "reason": "replaced"},
        "contract_share": contract | {"shared_with": str(effect.tenant_id), "shared_by": "admin"},
        "contract_share_acceptance": contract | {"accepted_by": "admin"},
        "credential": tenant | {"name": "billing-api"},
        "credential_binding": contract
        | {"credential": "billing-api", "version": 1, "attested_by": "admin"},
        "capability_grant": tenant
        | {
            "principal": "admin",
            "capability": "invoice:write:default",
            "granted_by": "admin",
        },
        "pin": contract | {"pin_id": uuid4(), "holder": "queue", "expires_at": LATER},
        "publisher_key": tenant | a_key(effect) | {"name": "grace", "added_by": "admin"},
        "contract_signature": contract
        | {
            "key_id": a_key(effect)["key_id"],
            "signature": bytes(64),
            "signed_by": "grace",
        },
        "signature_requirement": tenant | {"required_by": "admin"},
        "policy_revision": tenant | policy_row(1),
        "policy_head": tenant | {"policy": "safe-refund", "revision": 1},
        "policy_assignment": tenant
        | {"principal": "agent", "policy": "safe-refund", "assigned_by": "admin"},
        "registry_event": tenant
        | {"event_id": uuid4(), "kind": "publish", "subject": "x", "actor": "admin"},
        "audit_seal": tenant | seal_row(effect.tenant_id),
        "listing_progress": tenant | {"listing": "sha256:", "since": AT},
    }


def policy_row(revision: int) -> Row:
    """Return one revision of a policy."""
    return {
        "policy": "safe-refund",
        "revision": revision,
        "previous_revision": revision - 1 or None,
        "digest": "sha256:" + hashlib.sha256(DOCUMENT.encode()).hexdigest(),
        "document": DOCUMENT,
        "source": DOCUMENT,
        "published_by": "admin",
    }


def seal_row(tenant_id: UUID) -> Row:
    """Return the first seal of a tenant, over nothing."""
    told: Row = {"number": 1, "previous": None, "since": 0, "upto": 10}
    more = {"leaves": 0, "root": "sha256:" + "0" * 64, "sealed_at": "", "key_id": "k1"}
    seal = Seal(Statement(tenant=str(tenant_id), **told, **more).to_text(), bytes(64), b"")
    return told | {
        "digest": seal.digest,
        "statement": seal.text,
        "signature": seal.signature,
        "leaf_hashes": seal.leaf_hashes,
    }


def a_key(effect: Effect) -> Row:
    """Return a key of a tenant's own, and its id."""
    public_key = effect.tenant_id.bytes * 2
    return {"key_id": key_id(public_key), "public_key": public_key}


def key_id(public_key: bytes) -> str:
    return "ed25519:" + hashlib.sha256(public_key).hexdigest()[:16]


def ledger_rows(effect: Effect) -> dict[str, Row]:
    """Return a valid row for each table of the ledger."""
    tenant = {"tenant_id": effect.tenant_id}
    key = tenant | {"run_id": effect.run_id, "number": effect.number}
    recorded = key | {"contract_id": effect.contract_id, "effect_class": effect.effect_class}
    presented = {"presented_contract_id": effect.contract_id}
    return {
        "effect_idem": tenant | {"kind": "run", "name": str(uuid4()), "run_id": effect.run_id},
        "run_tool": tenant
        | {
            "run_id": effect.run_id,
            "tool": "billing.send_invoice",
            "contract_id": effect.contract_id,
        },
        "worker_session": tenant | {"worker_id": uuid4()},
        "effect": recorded
        | presented
        | {
            "run": "run-1",
            "identity": "effect-1",
            "tool": "billing.send_invoice",
            "contract_digest": "sha256:",
            "capabilities": ["invoice:write:default"],
            "credential_version": 1,
            "principal": "admin",
            "origin": "runtime",
            "arguments": "{}",
            "key_id": "k1",
            "request_fingerprint": bytes(32),
            "operation_fingerprint": bytes(32),
            "planned_at": AT,
        },
        "event": key
        | {
            "fence": 0,
            "transition": "T1",
            "from_state": "NEW",
            "to_state": "PLANNED",
            "previous_fence": None,
            "attempt": 0,
            "actor": "admin",
            "reason": "planned",
            "at": AT,
        },
        "effect_open": recorded
        | presented
        | {"state": "PLANNED", "fence": 0, "attempt": 0, "reason": "planned"},
        "effect_payload": key | {"key_id": "k1", "sealed": b"sealed"},
        "effect_attempt": recorded
        | {
            "attempt": 1,
            "fence": 1,
            "worker_id": uuid4(),
            "nonce": uuid4(),
            "credential_version": 1,
            "dispatched_at": AT,
            "lease_until": AT,
        },
        "effect_evidence": key
        | {
            "evidence_id": uuid4(),
            "fence": 1,
            "source": "person",
            "answer": "applied",
            "observed_at": AT,
            "received_at": AT,
            "detail": "",
        },
        "effect_outcome": key
        | {
            "revision": 1,
            "fence": 2,
            "status": "SUCCEEDED",
            "decided_by": "worker",
            "reason": "done",
            "finished_at": AT,
        },
        "resolution_event": key
        | {
            "step": 1,
            "fence": 0,
            "previous_step": None,
            "from_status": "new",
            "to_status": "proposed",
            "to_state": "FAILED",
            "principal": "ada",
            "reason": "never sent",
            "evidence": "the statement",
            "at": AT,
        },
    } | gate_rows(effect)


def gate_rows(effect: Effect) -> dict[str, Row]:
    """Return a valid row for each table of the gates."""
    run = {"tenant_id": effect.tenant_id, "run_id": effect.run_id}
    limit = {"policy": "safe-refund", "name": "refunds", "window_start": AT, "granted": 5}
    return {
        "run_subject": run | {"subject": "{}", "set_by": "admin"},
        "run_state": run,
        "run_tally": run | {"tool": "billing.send_invoice"},
        "run_fact": run
        | {
            "policy": "safe-refund",
            "policy_revision": 1,
            "name": "total",
            "key": "",
            "value": "7",
            "number": effect.number,
            "captured_at": AT,
        },
        "budget_pool": {"tenant_id": effect.tenant_id, "most": 10} | limit,
        "budget_slice": run | {"scope": "tenant", "policy_revision": 1} | limit,
        "approval": run
        | {
            "number": effect.number,
            "question": "May it run?",
            "contract_digest": "sha256:",
            "fingerprint": bytes(32),
            "credential_version": 1,
            "requested_by": "admin",
            "requested_at": AT,
            "expires_at": LATER,
        },
        "approval_event": run
        | {
            "number": effect.number,
            "step": 0,
            "previous_step": None,
            "from_status": "new",
            "to_status": "pending",
            "actor": "admin",
            "reason": "May it run?",
            "at": AT,
        },
        "gate_refusal": run
        | {
            "refusal_id": uuid4(),
            "tool": "billing.send_invoice",
            "version": "1.0.0",
            "gate": "permission",
            "code": "not_found",
            "true_code": "not_owner",
            "message": "No order is available.",
            "principal": "admin",
        },
    }


def insert(table: str, **changes: Any) -> Write:
    """Insert the row that is valid for a new effect, but for what is changed."""

    def write(connection: psycopg.Connection, effect: Effect) -> None:
        row = (registry_rows(effect) | ledger_rows(effect))[table] | changes
        statement = SQL("INSERT INTO {} ({}) VALUES ({})").format(
            Identifier(table),
            SQL(", ").join(map(Identifier, row)),
            SQL(", ").join(Placeholder() * len(row)),
        )
        connection.execute(statement, list(row.values()))

    return write


def event(transition: str, from_state: str, to_state: str, fence: int, **changes: Any) -> Write:
    row = {"transition": transition, "from_state": from_state, "to_state": to_state, "fence": fence}
    return insert("event", **{"previous_fence": fence - 1} | row | changes)


def change(**columns: Any) -> Write:
    """Change the open row."""

    def write(connection: psycopg.Connection, effect: Effect) -> None:
        sets = SQL(", ").join(SQL("{} = %s").format(Identifier(name)) for name in columns)
        connection.execute(
            SQL("UPDATE effect_open SET {} WHERE run_id = %s AND number = %s").format(sets),
            [*columns.values(), effect.run_id, effect.number],
        )

    return write


def close(connection: psycopg.Connection, effect: Effect) -> None:
    """Delete the open row."""
    connection.execute("DELETE FROM effect_open WHERE run_id = %s", [effect.run_id])


def step(
    transition: str, from_state: str, to_state: str, fence: int, **columns: Any
) -> list[Write]:
    """Take a step from one open state to another."""
    return [
        event(transition, from_state, to_state, fence),
        change(state=to_state, fence=fence, **columns),
    ]


OWNED = {"attempt": 1, "worker_id": uuid4(), "nonce": uuid4(), "due_at": AT}
FREE = {"worker_id": None, "nonce": None}

PLANNED = [insert("effect"), insert("event"), insert("effect_open")]
DISPATCHED = [
    *PLANNED,
    *step("T2", "PLANNED", "DISPATCHED", 1, **OWNED, first_dispatched_at=AT),
    insert("effect_attempt"),
]
UNKNOWN = [*DISPATCHED, *step("T4", "DISPATCHED", "UNKNOWN", 2, **FREE)]
RECONCILING = [*UNKNOWN, *step("T5", "UNKNOWN", "RECONCILING", 3)]
RETRYABLE = [*RECONCILING, *step("T6", "RECONCILING", "RETRYABLE", 4)]
SUCCEEDED = [
    *DISPATCHED,
    event("T3", "DISPATCHED", "SUCCEEDED", 2),
    close,
    insert("effect_outcome"),
]

QUARANTINED = [
    insert("effect"),
    insert("event", transition="T10", to_state="QUARANTINED"),
    insert("effect_open", state="QUARANTINED"),
]
# What nobody knows of an effect that the provider alone has.
NOT_KNOWN = dict.fromkeys(
    (
        "run",
        "identity",
        "capabilities",
        "credential_version",
        "principal",
        "key_id",
        "request_fingerprint",
        "operation_fingerprint",
    )
)
LISTED = insert("effect", origin="listing", **NOT_KNOWN)
ORPHAN = [LISTED, *QUARANTINED[1:]]
PROPOSED = [*QUARANTINED, insert("resolution_event")]

# --- a database with two tenants ------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A database in which two tenants have a row in every table."""

    url: str
    ours: Effect
    theirs: Effect


@pytest.fixture(scope="module")
def place(postgres_url: str, template_database: str, database_owner: str) -> Iterator[Place]:
    with database(postgres_url, template=template_database, owner=database_owner) as url:
        ours, theirs = Effect(uuid4(), uuid4()), Effect(uuid4(), uuid4())
        for effect in (ours, theirs):
            settle(url, effect)
        yield Place(url, ours, theirs)


def settle(url: str, effect: Effect) -> None:
    """Make a tenant with a row in every table: what the service may not write, the owner does."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO tenant (tenant_id, slug) VALUES (%s, %s)",
            [effect.tenant_id, str(effect.tenant_id)],
        )
        connection.execute(
            "INSERT INTO api_token (tenant_id, token_id, token_hash, name, prefix, principal,"
            " roles, created_by)"
            " VALUES (%s, %s, %s, 'admin', '', 'admin', '{admin}', 'owner')",
            [effect.tenant_id, uuid4(), effect.tenant_id.bytes * 2],
        )
    more = ("effect_idem", "run_tool", "worker_session", "effect_payload", "effect_evidence")
    registry = [insert(table) for table in registry_rows(effect)]
    serve(url, effect, *registry, *map(insert, more), *PLANNED, *map(insert, gate_rows(effect)))
    serve(url, another(effect), *SUCCEEDED)
    serve(url, another(effect, "UNKNOWN"), *PROPOSED)


def another(effect: Effect, effect_class: str = "IDEMPOTENT") -> Effect:
    """Return a new effect of the same tenant and contract."""
    return Effect(effect.tenant_id, effect.contract_id, effect_class)


@contextmanager
def service(url: str, tenant_id: UUID | str | None) -> Iterator[psycopg.Connection]:
    """Work as the service does for a tenant; commits at the end."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET ROLE tallystick_service")
        if tenant_id is not None:
            connection.execute(
                "SELECT set_config('tallystick.tenant', %s, false)", [str(tenant_id)]
            )
        with connection.transaction():
            yield connection


def serve(url: str, effect: Effect, *writes: Write) -> None:
    """Write as the service in one transaction of the effect's tenant."""
    with service(url, effect.tenant_id) as connection:
        for write in writes:
            write(connection, effect)


def ask(url: str, statement: LiteralString) -> set[Any]:
    """Ask as the owner; a row of one column is its value."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(statement).fetchall()
    return {row[0] if len(row) == 1 else row for row in rows}


# --- the ledger's rules ---------------------------------------------------------------------------

WHOLE = (errors.CheckViolation, "effect_is_whole")
LEGAL = (errors.ForeignKeyViolation, "event_is_legal_fkey")
FOLLOWS = (errors.ForeignKeyViolation, "event_follows_fkey")
RISES = (errors.CheckViolation, "event_fence_rises_by_one_check")
FIRST = (errors.CheckViolation, "event_first_is_new_check")
ONE_EFFECT = (errors.UniqueViolation, "effect_pkey")
ONE_EVENT = (errors.UniqueViolation, "event_pkey")
ONE_ATTEMPT = (errors.UniqueViolation, "effect_attempt_pkey")
AT_MOST_ONCE = (errors.CheckViolation, "effect_attempt_at_most_once_check")
NO_RETRY = (errors.CheckViolation, "effect_open_at_most_once_is_never_retryable_check")
PURE_IS_KNOWN = (errors.CheckViolation, "effect_open_pure_is_never_unknown_check")
RECORDED = (errors.ForeignKeyViolation, "effect_attempt_effect_fkey")
RECORDED_OPEN = (errors.ForeignKeyViolation, "effect_open_effect_fkey")
ONE_OUTCOME = (errors.UniqueViolation, "effect_outcome_run_id_number_fence_key")
SAID = (errors.ForeignKeyViolation, "effect_outcome_event_fkey")

REFUSED = [
    event("T9", "PLANNED", "REFUSED", 1),
    insert("effect_outcome", fence=1, status="REFUSED"),
]
AROUND = [
    event("T4", "DISPATCHED", "UNKNOWN", 2),
    event("T5", "UNKNOWN", "RECONCILING", 3),
    event("T6", "RECONCILING", "RETRYABLE", 4),
    event("T7", "RETRYABLE", "DISPATCHED", 5),
]

AGAIN = [
    event("T12", "SUCCEEDED", "QUARANTINED", 3, attempt=1),
    insert("effect_open", state="QUARANTINED", fence=3, attempt=1, first_dispatched_at=AT),
]

# what it would be, after which history, of which class, the writes, the refusal
FORBIDDEN: list[tuple[str, list[Write], str, list[Write], tuple[type[Exception], str]]] = [
    # An effect is there whole: itself, its events, and its open row or its outcome.
    ("an effect twice", PLANNED, "PURE", PLANNED[:1], ONE_EFFECT),
    ("an effect without history", [], "PURE", PLANNED[:1], WHOLE),
    ("no event", [], "PURE", [PLANNED[0], PLANNED[2]], WHOLE),
    ("neither open nor closed", [], "PURE", PLANNED[:2], WHOLE),
    ("history without an effect", [], "PURE", [insert("event"), *REFUSED], WHOLE),
    ("open without an effect", [], "PURE", PLANNED[1:], RECORDED_OPEN),
    ("gone", PLANNED, "PURE", [close], WHOLE),
    ("gone, with an event", PLANNED, "PURE", [REFUSED[0], close], WHOLE),
    ("open and closed", PLANNED, "PURE", REFUSED, WHOLE),
    ("open and closed on one fence", PLANNED, "PURE", [*REFUSED, change(fence=1)], WHOLE),
    ("an outcome without event", PLANNED, "PURE", [close, REFUSED[1]], SAID),
    (
        "an outcome of an open state's fence",
        PLANNED,
        "PURE",
        [insert("effect_outcome", fence=0, status="REFUSED")],
        SAID,
    ),
    (
        "an outcome unlike its event",
        PLANNED,
        "PURE",
        [REFUSED[0], close, insert("effect_outcome", fence=1, status="CANCELLED")],
        SAID,
    ),
    (
        "another outcome of one event",
        SUCCEEDED,
        "PURE",
        [insert("effect_outcome", revision=2, result="other")],
        ONE_OUTCOME,
    ),
    ("open again", SUCCEEDED, "PURE", [insert("effect_open")], WHOLE),
    ("open again by no step", SUCCEEDED, "PURE", [AGAIN[1]], WHOLE),
    ("open again in name alone", SUCCEEDED, "PURE", [AGAIN[0]], WHOLE),
    (
        "open again for a worker",
        [*SUCCEEDED, *AGAIN],
        "IDEMPOTENT",
        step("T11", "QUARANTINED", "RETRYABLE", 4),
        WHOLE,
    ),
    # The open row and the last event say the same.
    ("a state without event", PLANNED, "PURE", [change(state="QUARANTINED")], WHOLE),
    ("a fence without event", PLANNED, "PURE", [change(fence=1)], WHOLE),
    ("an event without state", PLANNED, "PURE", [event("T2", "PLANNED", "DISPATCHED", 1)], WHOLE),
    (
        "an event, and another state",
        PLANNED,
        "PURE",
        [event("T8", "PLANNED", "CANCELLED", 1), change(state="QUARANTINED", fence=1)],
        WHOLE,
    ),
    (
        "an earlier fence",
        DISPATCHED,
        "PURE",
        [change(state="PLANNED", fence=0, **FREE)],
        WHOLE,
    ),
    # Steps are legal and follow each other.
    ("a step that is none", PLANNED, "PURE", [event("T3", "PLANNED", "SUCCEEDED", 1)], LEGAL),
    ("a step misnamed", PLANNED, "PURE", [event("T7", "PLANNED", "DISPATCHED", 1)], LEGAL),
    ("a step out of the end", SUCCEEDED, "PURE", [event("T8", "SUCCEEDED", "CANCELLED", 3)], LEGAL),
    ("a step from elsewhere", PLANNED, "PURE", [event("T5", "UNKNOWN", "RECONCILING", 1)], FOLLOWS),
    ("a fence left out", PLANNED, "PURE", [event("T2", "PLANNED", "DISPATCHED", 2)], FOLLOWS),
    (
        "a fence that jumps",
        PLANNED,
        "PURE",
        [event("T2", "PLANNED", "DISPATCHED", 2, previous_fence=0)],
        RISES,
    ),
    ("a second beginning", PLANNED, "PURE", [event("T10", "NEW", "QUARANTINED", 1)], FIRST),
    ("the first fence again", PLANNED, "PURE", [insert("event")], ONE_EVENT),
    (
        "a second event on a fence",
        DISPATCHED,
        "PURE",
        [event("T8", "PLANNED", "CANCELLED", 1)],
        ONE_EVENT,
    ),
    # Attempts.
    (
        "dispatched without an attempt",
        PLANNED,
        "PURE",
        step("T2", "PLANNED", "DISPATCHED", 1, **OWNED, first_dispatched_at=AT),
        WHOLE,
    ),
    (
        "dispatched with an attempt of another fence",
        PLANNED,
        "PURE",
        [
            *step("T2", "PLANNED", "DISPATCHED", 1, **OWNED, first_dispatched_at=AT),
            insert("effect_attempt", fence=0),
        ],
        WHOLE,
    ),
    (
        "dispatched again on the first attempt",
        RETRYABLE,
        "IDEMPOTENT",
        step("T7", "RETRYABLE", "DISPATCHED", 5, **OWNED),
        WHOLE,
    ),
    ("an attempt twice", DISPATCHED, "PURE", [insert("effect_attempt")], ONE_ATTEMPT),
    (
        "an attempt on another contract",
        PLANNED,
        "PURE",
        [insert("effect_attempt", contract_id=uuid4())],
        RECORDED,
    ),
    (
        "an attempt under another class",
        PLANNED,
        "NON_RETRYABLE",
        [insert("effect_attempt", effect_class="IDEMPOTENT")],
        RECORDED,
    ),
    *(
        case
        for once in ("UNKNOWN", "NON_RETRYABLE")
        for case in (
            (
                f"a second attempt of {once}",
                DISPATCHED,
                once,
                [insert("effect_attempt", attempt=2)],
                AT_MOST_ONCE,
            ),
            (
                f"{once} retryable",
                RECONCILING,
                once,
                step("T6", "RECONCILING", "RETRYABLE", 4),
                NO_RETRY,
            ),
            (
                f"{once} dispatched again at one blow",
                DISPATCHED,
                once,
                [*AROUND, change(fence=5)],
                WHOLE,
            ),
        )
    ),
    ("an orphan planned", [], "IDEMPOTENT", [LISTED, *PLANNED[1:]], WHOLE),
    (
        "an orphan to be sent",
        ORPHAN,
        "IDEMPOTENT",
        step("T11", "QUARANTINED", "RETRYABLE", 1),
        WHOLE,
    ),
    (
        "an orphan given up",
        ORPHAN,
        "IDEMPOTENT",
        [
            event("T8", "QUARANTINED", "CANCELLED", 1),
            close,
            insert("effect_outcome", fence=1, status="CANCELLED"),
        ],
        WHOLE,
    ),
    (
        "PURE unknown",
        DISPATCHED,
        "PURE",
        step("T4", "DISPATCHED", "UNKNOWN", 2, **FREE),
        PURE_IS_KNOWN,
    ),
]


def refused(place: Place, effect: Effect, writes: list[Write]):
    """Write what must be refused, now or at the commit; return the error and the constraint."""
    with pytest.raises(psycopg.Error) as caught:
        serve(place.url, effect, *writes)
    # A partition's keys are named after it: event_2026_01_pkey.
    constraint = re.sub(r"_\d{4}_\d{2}(?=_)", "", caught.value.diag.constraint_name or "")
    return type(caught.value), constraint


@pytest.mark.parametrize(
    ("given", "effect_class", "writes", "refusal"),
    [pytest.param(*case, id=name) for name, *case in FORBIDDEN],
)
def test_the_ledger_refuses(place: Place, given, effect_class: str, writes, refusal):
    effect = another(place.ours, effect_class)
    serve(place.url, effect, *given)
    assert refused(place, effect, writes) == refusal


@pytest.mark.parametrize(
    ("given", "writes", "refusal"),
    [
        (PLANNED, [event("T2", "PLANNED", "DISPATCHED", 1)], WHOLE),
        (PLANNED, [insert("effect_attempt")], RECORDED),
        ([*PLANNED[:2], *REFUSED], [insert("effect_open")], (errors.InsufficientPrivilege, "")),
        (PLANNED, REFUSED, WHOLE),
    ],
)
def test_nobody_goes_on_with_another_tenants_effect(place: Place, given, writes, refusal):
    effect = another(place.theirs)
    serve(place.url, effect, *given)
    assert refused(place, replace(effect, tenant_id=place.ours.tenant_id), writes) == refusal


@pytest.mark.parametrize("table", ["contract_closing", "contract_share", "contract_state"])
def test_nobody_says_anything_of_another_tenants_contract(place: Place, table: str):
    contract = replace(place.theirs, contract_id=uuid4())
    serve(place.url, contract, insert("contract", name=str(uuid4())))

    foreign = replace(contract, tenant_id=place.ours.tenant_id)
    constraint = f"{table}_tenant_id_contract_id_fkey"
    assert refused(place, foreign, [insert(table)]) == (errors.ForeignKeyViolation, constraint)

    serve(place.url, contract, insert(table))


@pytest.mark.parametrize("table", ["credential_binding", "pin"])
def test_nobody_uses_a_contract_of_another_tenant(place: Place, table: str):
    """Nor one that is nowhere: both are refused alike, before any key is looked up."""
    for contract_id in (place.theirs.contract_id, uuid4()):
        foreign = replace(place.ours, contract_id=contract_id)
        use = insert(table, pin_id=uuid4()) if table == "pin" else insert(table)
        assert refused(place, foreign, [use]) == (errors.InsufficientPrivilege, "")


def test_nobody_accepts_what_is_not_offered(place: Place):
    """Nor what is nowhere: both are refused alike; a share that was taken back is no offer."""
    theirs = replace(place.theirs, contract_id=uuid4())
    ours = str(place.ours.tenant_id)
    share = insert("contract_share", shared_with=ours, revoked_at=LATER)
    serve(place.url, theirs, insert("contract", name=str(uuid4())), share)
    accept = insert("contract_share_acceptance")
    for contract_id in (theirs.contract_id, uuid4()):
        foreign = replace(place.ours, contract_id=contract_id)
        assert refused(place, foreign, [accept]) == (errors.InsufficientPrivilege, "")


def test_a_retired_version_stays_retired(place: Place):
    retire = "UPDATE contract_state SET lifecycle = %s WHERE contract_id = %s"
    with pytest.raises(errors.CheckViolation) as caught, psycopg.connect(place.url) as connection:
        connection.execute(retire, ["RETIRED", place.ours.contract_id])
        connection.execute(retire, ["RETIRED", place.ours.contract_id])
        connection.execute(retire, ["ACTIVE", place.ours.contract_id])
    assert caught.value.diag.constraint_name == "retired_stays"


@pytest.mark.parametrize(
    "again",
    [
        "revoked_at = NULL, revoked_by = NULL, reason = NULL",
        "revoked_at = now() + interval '1 day'",
        "reason = 'another'",
    ],
)
def test_a_revoked_key_stays_revoked(place: Place, again: LiteralString):
    with (
        pytest.raises(errors.CheckViolation) as caught,
        service(place.url, place.ours.tenant_id) as connection,
    ):
        connection.execute(
            "UPDATE publisher_key SET revoked_at = now(), revoked_by = 'admin', reason = 'lost'"
        )
        connection.execute(f"UPDATE publisher_key SET {again}")
    assert caught.value.diag.constraint_name == "revoked_key_stays"


def test_revisions_of_a_policy_leave_no_gap(place: Place):
    follows = (errors.ForeignKeyViolation, "policy_revision_follows_fkey")
    assert refused(place, place.ours, [insert("policy_revision", **policy_row(3))]) == follows
    theirs = str(uuid4())
    serve(place.url, place.theirs, insert("policy_revision", policy=theirs))
    after_theirs = insert("policy_revision", **(policy_row(2) | {"policy": theirs}))
    assert refused(place, place.ours, [after_theirs]) == follows


@pytest.mark.parametrize("revision", [1, 2, 4])
def test_a_policy_goes_on_by_one_revision(place: Place, revision: int):
    name = str(uuid4())
    rows = [policy_row(number) | {"policy": name} for number in (1, 2, 3, 4)]
    serve(place.url, place.ours, *(insert("policy_revision", **row) for row in rows))
    serve(place.url, place.ours, insert("policy_head", policy=name))

    def advance(number: int) -> Write:
        def write(connection: psycopg.Connection, _: Effect) -> None:
            connection.execute(
                "UPDATE policy_head SET revision = %s WHERE policy = %s", [number, name]
            )

        return write

    serve(place.url, place.ours, advance(2))
    serve(place.url, place.ours, *([] if revision == 4 else [advance(3)]))
    goes_on = (errors.CheckViolation, "policy_head_goes_on")
    assert refused(place, place.ours, [advance(revision)]) == goes_on


def test_nobody_is_held_to_a_policy_that_is_not_there(place: Place):
    """Nor to another tenant's: both are refused alike."""
    name, nowhere = str(uuid4()), str(uuid4())
    head = insert("policy_head", policy=name)
    missing = (errors.ForeignKeyViolation, "policy_head_tenant_id_policy_revision_fkey")
    assert refused(place, place.ours, [head]) == missing
    serve(place.url, place.theirs, insert("policy_revision", policy=name), head)
    assert refused(place, place.ours, [head]) == missing
    for policy in (name, nowhere):
        assign = insert("policy_assignment", principal=nowhere, policy=policy)
        foreign = (errors.ForeignKeyViolation, "policy_assignment_tenant_id_policy_fkey")
        assert refused(place, place.ours, [assign]) == foreign


ASKED = [*PLANNED, insert("approval"), insert("approval_event")]
DECIDED = {"decided_by": "grace", "decided_at": AT}


def word(step: int, to_status: str, **columns: Any) -> Write:
    """Take a step of an approval."""
    before = {1: "pending", 2: "approved"}.get(step, to_status)
    told = {"step": step, "previous_step": step - 1, "from_status": before, "to_status": to_status}

    def write(connection: psycopg.Connection, effect: Effect) -> None:
        insert("approval_event", **told)(connection, effect)
        set_approval(step=step, status=to_status, **columns)(connection, effect)

    return write


def set_approval(**columns: Any) -> Write:
    """Change an approval's row."""

    def write(connection: psycopg.Connection, effect: Effect) -> None:
        sets = SQL(", ").join(SQL("{} = %s").format(Identifier(name)) for name in columns)
        connection.execute(
            SQL("UPDATE approval SET {} WHERE run_id = %s").format(sets),
            [*columns.values(), effect.run_id],
        )

    return write


APPROVED = [*ASKED, word(1, "approved", **DECIDED)]
CONSUMED = [*APPROVED, word(2, "consumed")]
BOUND = (errors.CheckViolation, "approval_is_bound")
GOES_ON = (errors.CheckViolation, "approval_goes_on")
SAYS = (errors.ForeignKeyViolation, "approval_event_fkey")
STEP_FOLLOWS = (errors.ForeignKeyViolation, "approval_event_follows_fkey")
STEP_IS_LEGAL = (errors.CheckViolation, "approval_event_is_legal_check")


@pytest.mark.parametrize(
    ("given", "writes", "refusal"),
    [
        # it is one of its effect
        ([], ASKED[3:], (errors.ForeignKeyViolation, "approval_run_id_number_fkey")),
        (PLANNED, [insert("approval", requested_by="somebody")], BOUND),
        (PLANNED, [insert("approval", fingerprint=bytes(31) + b"7")], BOUND),
        (PLANNED, [insert("approval", contract_digest="sha256:7")], BOUND),
        (PLANNED, [insert("approval", credential_version=2)], BOUND),
        (PLANNED, [insert("approval", policy="safe-refund", policy_revision=1)], BOUND),
        # each status has its event
        (PLANNED, [insert("approval")], SAYS),
        (ASKED, [set_approval(step=1, status="expired")], SAYS),
        (ASKED, [set_approval(step=1, status="approved", **DECIDED)], SAYS),
        # two people
        (
            ASKED,
            [word(1, "approved", decided_by="admin", decided_at=AT)],
            (errors.CheckViolation, "approval_takes_two_people_check"),
        ),
        (
            ASKED,
            [word(1, "approved")],
            (errors.CheckViolation, "approval_decision_is_whole_check"),
        ),
        # steps are legal, follow each other and are not taken back
        (ASKED, [insert("approval_event", step=1, previous_step=0, from_status="pending",
                        to_status="consumed")], STEP_IS_LEGAL),
        (ASKED, [word(2, "consumed")], STEP_FOLLOWS),
        (APPROVED, [set_approval(step=0, status="pending")], GOES_ON),
        (APPROVED, [set_approval(decided_by="ada")], GOES_ON),
        (APPROVED, [set_approval(step=2, status="stale", decided_by="ada")], GOES_ON),
        (CONSUMED, [set_approval(step=1, status="approved")], GOES_ON),
        (CONSUMED, [word(3, "consumed")], STEP_IS_LEGAL),
        (CONSUMED, [insert("approval_event", step=2)], (errors.CheckViolation,
                                                         "approval_event_first_is_new_check")),
    ],
)  # fmt: skip
def test_an_approval_is_held_to_its_law(place: Place, given, writes, refusal):
    effect = another(place.ours)
    serve(place.url, effect, *given)
    assert refused(place, effect, writes) == refusal


def test_an_effect_has_one_approval(place: Place):
    effect = another(place.ours)
    serve(place.url, effect, *CONSUMED)
    once = (errors.UniqueViolation, "approval_pkey")
    assert refused(place, effect, [insert("approval")]) == once


SECOND = {
    "step": 2,
    "previous_step": 1,
    "from_status": "proposed",
    "to_status": "confirmed",
    "principal": "grace",
    "proposed_by": "ada",
}
CONFIRMED = [*PROPOSED, insert("resolution_event", **SECOND)]
AGREES = (errors.ForeignKeyViolation, "resolution_event_agrees_fkey")
TWO_PEOPLE = (errors.CheckViolation, "two_people_agreed")
FAILED = [
    event("T11", "QUARANTINED", "FAILED", 1),
    close,
    insert("effect_outcome", fence=1, status="FAILED"),
]


@pytest.mark.parametrize(
    ("given", "writes", "refusal"),
    [
        # it is of a quarantine
        (PLANNED, [insert("resolution_event")], (errors.CheckViolation, "resolution_is_bound")),
        (QUARANTINED, [insert("resolution_event", fence=1)],
         (errors.CheckViolation, "resolution_is_bound")),
        # the second one is another, and says the same of the same
        (PROPOSED, [insert("resolution_event", **SECOND | {"principal": "ada"})],
         (errors.CheckViolation, "resolution_event_takes_two_people_check")),
        (PROPOSED, [insert("resolution_event", **SECOND | {"proposed_by": "eve"})], AGREES),
        (PROPOSED, [insert("resolution_event", **SECOND, to_state="SUCCEEDED")], AGREES),
        # steps follow each other
        (QUARANTINED, [insert("resolution_event", **SECOND | {"proposed_by": "ada"})],
         (errors.ForeignKeyViolation, "resolution_event_follows_fkey")),
        # nothing ends without two
        (QUARANTINED, FAILED, TWO_PEOPLE),
        (PROPOSED, FAILED, TWO_PEOPLE),
        (CONFIRMED, [event("T11", "QUARANTINED", "SUCCEEDED", 1), close,
                     insert("effect_outcome", fence=1)], TWO_PEOPLE),
    ],
)  # fmt: skip
def test_a_resolution_is_held_to_its_law(place: Place, given, writes, refusal):
    effect = another(place.ours, "NON_RETRYABLE")
    serve(place.url, effect, *given)
    assert refused(place, effect, writes) == refusal


def test_the_law_of_proposals_is_that_of_the_code(place: Place):
    definitions = dict(
        ask(place.url, "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint")
    )
    words = re.findall("'([a-z]+)'", definitions["resolution_event_is_legal_check"])
    assert set(zip(words[::2], words[1::2], strict=True)) == quarantine.LEGAL


def test_two_who_agree_end_it(place: Place):
    effect = another(place.ours, "NON_RETRYABLE")
    serve(place.url, effect, *CONFIRMED, *FAILED)


CANCELLED = [
    *PLANNED,
    event("T8", "PLANNED", "CANCELLED", 1),
    close,
    insert("effect_outcome", fence=1, status="CANCELLED"),
]
TAKES = (errors.CheckViolation, "superseded_is_cancelled")


@pytest.mark.parametrize(
    ("given", "changes", "refusal"),
    [
        (CANCELLED, {}, None),
        (PLANNED, {}, TAKES),
        (QUARANTINED, {}, TAKES),
        (SUCCEEDED, {}, TAKES),
        (CANCELLED, {"principal": "eve"}, TAKES),
        (CANCELLED, {"tool": "billing.refund"}, TAKES),
        ([], {}, (errors.ForeignKeyViolation, "effect_supersedes_fkey")),
    ],
)
def test_only_what_was_cancelled_unsent_is_superseded(place: Place, given, changes, refusal):
    old = another(place.ours)
    serve(place.url, old, *given)
    new = replace(old, number=2)
    writes = [insert("effect", supersedes=1, **changes), *PLANNED[1:]]
    if refusal is not None:
        assert refused(place, new, writes) == refusal
        return
    serve(place.url, new, *writes)
    twice = refused(place, replace(old, number=3), writes)
    assert twice[0] is errors.UniqueViolation, "one thing takes its place"


def test_nobody_signs_with_another_tenants_key(place: Place):
    stolen = insert("contract_signature", key_id=a_key(place.theirs)["key_id"])
    missing = (errors.ForeignKeyViolation, "contract_signature_key_fkey")
    assert refused(place, place.ours, [stolen]) == missing


def test_nobody_signs_another_tenants_contract(place: Place):
    stolen = insert("contract_signature", contract_id=place.theirs.contract_id)
    assert refused(place, place.ours, [stolen]) == (errors.InsufficientPrivilege, "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("revoked_at = now()", "revoked_at = NULL"),
        ("revoked_at = now()", "revoked_at = now() + interval '1 day'"),
        ("expires_at = now()", "expires_at = now() + interval '1 second'"),
        ("expires_at = now()", "expires_at = 'infinity'"),
        ("expires_at = now()", "expires_at = NULL"),
    ],
)
def test_what_a_token_opens_never_grows(place: Place, before: LiteralString, after: LiteralString):
    with (
        pytest.raises(errors.CheckViolation) as caught,
        service(place.url, place.ours.tenant_id) as connection,
    ):
        connection.execute(f"UPDATE api_token SET {before}")
        connection.execute(f"UPDATE api_token SET {after}")
    assert caught.value.diag.constraint_name == "api_token_only_narrows"


@pytest.mark.parametrize(
    ("table", "count"),
    [("run_tally", "dispatched"), ("run_tally", "succeeded"), ("budget_slice", "used")],
)
def test_what_a_run_did_never_becomes_less(place: Place, table: str, count: str):
    less = SQL("UPDATE {} SET {} = 1 WHERE run_id = %s").format(
        Identifier(table), Identifier(count)
    )

    def lessen(connection: psycopg.Connection, effect: Effect) -> None:
        connection.execute(less, [effect.run_id])

    rises = (errors.CheckViolation, "counts_only_rise")
    assert refused(place, another(place.ours), [insert(table, **{count: 2}), lessen]) == rises


def test_a_token_is_looked_up_before_its_tenant_is_known(place: Place):
    with service(place.url, None) as connection:
        found = connection.execute(
            "SELECT tenant_id, roles FROM authenticate(%s)", [place.theirs.tenant_id.bytes * 2]
        ).fetchall()
        assert found == [(place.theirs.tenant_id, ["admin"])]
        missing = connection.execute("SELECT FROM authenticate(%s)", [bytes(32)]).fetchall()
        assert missing == []
        named = connection.execute(
            "SELECT tenant_named(%s), tenant_named('nobody')", [str(place.theirs.tenant_id)]
        ).fetchall()
        assert named == [(place.theirs.tenant_id, None)]


def test_the_roles_are_those_of_the_code(place: Place):
    definitions = dict(
        ask(place.url, "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint")
    )
    known = re.findall("'([a-z]+)'", definitions["api_token_roles_are_known_check"])
    assert set(known) == set(Role)


def test_the_law_is_that_of_the_code(place: Place):
    law = ask(place.url, "SELECT transition, from_state, to_state FROM legal_transition")
    assert law == {(step.id, step.from_state, step.to_state) for step in TRANSITIONS}


@pytest.mark.parametrize(
    ("constraint", "known"),
    [("effect_open_state_is_open_check", OPEN), ("effect_outcome_status_is_closed_check", CLOSED)],
)
def test_the_states_are_those_of_the_code(place: Place, constraint: str, known):
    definitions = dict(
        ask(place.url, "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint")
    )
    assert set(re.findall("'([A-Z]+)'", definitions[constraint])) == known


# --- CHECK constraints ----------------------------------------------------------------------------

DIGEST = "sha256:" + "0" * 64

# constraint: the table, and what is changed in a valid row
CHECKS: dict[str, tuple[str, dict[str, Any]]] = {
    "approval_decision_is_whole_check": ("approval", {"status": "approved"}),
    "approval_event_first_is_new_check": ("approval_event", {"from_status": "pending"}),
    "approval_event_is_legal_check": ("approval_event", {"to_status": "approved"}),
    "approval_event_step_rises_by_one_check": (
        "approval_event",
        {"step": 2, "previous_step": 0, "from_status": "pending", "to_status": "approved"},
    ),
    "approval_expires_after_it_was_requested_check": (
        "approval",
        {"expires_at": AT.isoformat()},
    ),
    "approval_takes_two_people_check": (
        "approval",
        {"status": "approved", "decided_by": "admin", "decided_at": AT.isoformat()},
    ),
    "budget_pool_is_not_overdrawn_check": ("budget_pool", {"granted": 11}),
    "budget_slice_is_not_overspent_check": ("budget_slice", {"used": 6}),
    "budget_slice_scope_is_known_check": ("budget_slice", {"scope": "world"}),
    "effect_supersedes_another_check": ("effect", {"supersedes": 1}),
    "event_cancelled_from_quarantine_was_never_sent_check": (
        "event",
        {"transition": "T8", "from_state": "QUARANTINED", "to_state": "CANCELLED"},
    ),
    "resolution_event_first_is_new_check": ("resolution_event", {"from_status": "proposed"}),
    "resolution_event_is_legal_check": ("resolution_event", {"to_status": "withdrawn"}),
    "resolution_event_step_rises_by_one_check": (
        "resolution_event",
        {"step": 3, "previous_step": 1, "from_status": "proposed"},
    ),
    "resolution_event_takes_two_people_check": ("resolution_event", {"proposed_by": "eve"}),
    "resolution_event_to_state_is_closed_check": ("resolution_event", {"to_state": "RETRYABLE"}),
    "effect_policy_is_whole_check": ("effect", {"policy": "safe-refund"}),
    "gate_refusal_gate_is_known_check": ("gate_refusal", {"gate": "back door"}),
    "run_tally_counts_are_not_negative_check": ("run_tally", {"succeeded": -1}),
    "api_token_expires_after_it_was_made_check": (
        "api_token",
        {"created_at": LATER.isoformat(), "expires_at": AT.isoformat()},
    ),
    "api_token_has_a_role_check": ("api_token", {"roles": []}),
    "api_token_hash_is_sha256_check": ("api_token", {"token_hash": "\\x00"}),
    "api_token_name_is_a_label_check": ("api_token", {"name": "not a label"}),
    "api_token_prefix_is_short_check": ("api_token", {"prefix": "tk_" + "x" * 43}),
    "api_token_roles_are_known_check": ("api_token", {"roles": ["admin", "root"]}),
    "audit_seal_digest_is_true_check": ("audit_seal", {"digest": DIGEST}),
    "audit_seal_first_is_new_check": ("audit_seal", {"since": 1}),
    "audit_seal_goes_forward_check": ("audit_seal", {"upto": 0}),
    "audit_seal_number_rises_by_one_check": (
        "audit_seal",
        {"number": 3, "previous_number": 1, "previous": DIGEST},
    ),
    "audit_seal_signature_is_ed25519_check": ("audit_seal", {"signature": "\\x00"}),
    "audit_seal_statement_says_the_same_check": ("audit_seal", {"leaf_hashes": "\\x00"}),
    "contract_content_digest_is_true_check": ("contract_content", {"contract_digest": DIGEST}),
    "contract_content_prompt_hash_is_sha256_check": ("contract_content", {"prompt_hash": "0"}),
    "contract_content_schema_hash_is_sha256_check": ("contract_content", {"schema_hash": "0"}),
    "contract_review_is_whole_check": ("contract", {"reviewer": "somebody"}),
    "contract_signature_is_ed25519_check": (
        "contract_signature",
        {"signature": "\\x" + "00" * 65},
    ),
    "contract_state_lifecycle_is_known_check": ("contract_state", {"lifecycle": "GONE"}),
    "contract_version_has_three_parts_check": ("contract", {"version": "1.0"}),
    "contract_share_shared_with_is_a_label_check": ("contract_share", {"shared_with": "Nobody."}),
    "credential_version_is_positive_check": ("credential", {"version": 0}),
    "effect_attempt_at_most_once_check": (
        "effect_attempt",
        {"attempt": 2, "effect_class": "NON_RETRYABLE"},
    ),
    "effect_attempt_is_positive_check": ("effect_attempt", {"attempt": 0}),
    "effect_class_is_known_check": ("effect", {"effect_class": "SAFE"}),
    "effect_evidence_answer_is_known_check": ("effect_evidence", {"answer": "perhaps"}),
    "effect_fingerprints_are_sha256_check": ("effect", {"operation_fingerprint": "\\x00"}),
    "effect_idem_key_names_an_effect_check": ("effect_idem", {"kind": "key", "number": None}),
    "effect_idem_kind_is_known_check": ("effect_idem", {"kind": "other"}),
    "effect_number_is_positive_check": ("effect", {"number": 0}),
    "effect_open_at_most_once_is_never_retryable_check": (
        "effect_open",
        {"state": "RETRYABLE", "effect_class": "UNKNOWN"},
    ),
    "effect_look_up_is_pure_check": ("effect", {"origin": "look_up"}),
    "effect_open_attempt_was_dispatched_check": ("effect_open", {"attempt": 1}),
    "effect_open_counts_are_not_negative_check": ("effect_open", {"checks": -1}),
    "effect_open_dispatched_has_an_owner_check": ("effect_open", {"worker_id": str(uuid4())}),
    "effect_open_pure_is_never_unknown_check": (
        "effect_open",
        {"state": "RECONCILING", "effect_class": "PURE", "due_at": AT.isoformat()},
    ),
    "effect_open_state_is_open_check": ("effect_open", {"state": "SUCCEEDED"}),
    "effect_open_waiting_is_due_check": ("effect_open", {"state": "UNKNOWN"}),
    "effect_orphan_says_what_is_unknown_check": ("effect", {"principal": None}),
    "listing_progress_counts_are_not_negative_check": ("listing_progress", {"failures": -1}),
    "listing_progress_cursor_is_of_a_pass_check": ("listing_progress", {"cursor": "7"}),
    "effect_origin_is_known_check": ("effect", {"origin": "nowhere"}),
    "effect_outcome_revision_is_positive_check": ("effect_outcome", {"revision": 0}),
    "effect_outcome_status_is_closed_check": ("effect_outcome", {"status": "PLANNED"}),
    "event_fence_rises_by_one_check": ("event", {"fence": -1}),
    "event_first_is_new_check": ("event", {"from_state": "PLANNED"}),
    "policy_revision_digest_is_true_check": ("policy_revision", {"digest": DIGEST}),
    "policy_revision_policy_is_a_label_check": ("policy_revision", {"policy": "no label"}),
    "policy_revision_rises_by_one_check": ("policy_revision", {"revision": 7}),
    "publisher_key_id_is_true_check": ("publisher_key", {"key_id": key_id(b"another")}),
    "publisher_key_is_ed25519_check": (
        "publisher_key",
        {"public_key": "\\x00", "key_id": key_id(b"\0")},
    ),
    "publisher_key_revocation_is_whole_check": (
        "publisher_key",
        {"revoked_at": AT.isoformat(), "revoked_by": "admin"},
    ),
    "tenant_slug_is_a_label_check": ("tenant", {"slug": "Not a label"}),
}


def test_every_check_is_violated_here(place: Place):
    known = ask(
        place.url,
        """
        SELECT conname::text
          FROM pg_constraint
         WHERE contype = 'c' AND connamespace = 'public'::regnamespace AND coninhcount = 0
        """,
    )
    assert known == CHECKS.keys()


@pytest.mark.parametrize("constraint", CHECKS)
def test_check(place: Place, constraint: str):
    table, changes = CHECKS[constraint]
    assert copied(place, table, {}) == "23505", "but for what is changed, the row is valid"
    assert copied(place, table, changes) == constraint


def copied(place: Place, table: str, changes: dict[str, Any]) -> str | None:
    """Copy a row of ours with changes; return the CHECK that refused, or another SQLSTATE."""
    row = first_row(place, table, place.ours) | changes
    with psycopg.connect(place.url) as connection, pytest.raises(psycopg.Error) as caught:
        paste(connection, table, row)
    checked = isinstance(caught.value, errors.CheckViolation)
    return caught.value.diag.constraint_name if checked else caught.value.sqlstate


def first_row(place: Place, table: str, effect: Effect) -> Row:
    """Return the oldest row of a tenant as the owner reads it."""
    statement = SQL(
        "SELECT to_jsonb(row) FROM {} AS row WHERE tenant_id = %s ORDER BY tableoid, ctid LIMIT 1"
    )
    with psycopg.connect(place.url) as connection:
        found = connection.execute(statement.format(Identifier(table)), [effect.tenant_id])
        (row,) = found.fetchone() or ({},)
    return row


def paste(connection: psycopg.Connection, table: str, row: Row) -> None:
    statement = SQL("INSERT INTO {0} ({1}) SELECT {1} FROM jsonb_populate_record(NULL::{0}, %s)")
    columns = SQL(", ").join(map(Identifier, row))
    connection.execute(statement.format(Identifier(table), columns), [Jsonb(row)])


# --- privileges -----------------------------------------------------------------------------------


def test_the_service_may_do_this_and_no_more(place: Place):
    expected = {(table, "", verb) for table, verbs in MAY.items() for verb in verbs.split()}
    for verb, allowed in (("SELECT", MAY_SELECT), ("UPDATE", MAY_UPDATE)):
        for table, columns in allowed.items():
            expected |= {(table, column, verb) for column in columns.split()}
    for table in SEALED:
        columns = first_row(place, table, place.ours).keys() - BY_THE_DATABASE
        expected.remove((table, "", "INSERT"))
        expected |= {(table, column, "INSERT") for column in columns}
    granted = ask(
        place.url,
        """
        SELECT class.relname::text, '', acl.privilege_type
          FROM pg_class AS class, aclexplode(class.relacl) AS acl
         WHERE class.relnamespace = 'public'::regnamespace
           AND acl.grantee IN (0, 'tallystick_service'::regrole)
         UNION
        SELECT attrelid::regclass::text, attname::text, acl.privilege_type
          FROM pg_attribute, aclexplode(attacl) AS acl
         WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
           AND acl.grantee IN (0, 'tallystick_service'::regrole)
        """,
    )
    assert granted == expected


def test_the_service_may_call_this_and_no_more(place: Place):
    functions = (
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
    )
    callable_ = " AND has_function_privilege('tallystick_service', oid, 'EXECUTE')"
    assert ask(place.url, functions + callable_) == MAY_CALL
    # What runs with its owner's rights looks up names where nobody else can put any.
    pinned = ask(
        place.url,
        functions
        + " AND prosecdef AND proconfig[1] IS DISTINCT FROM 'search_path=public, pg_temp'",
    )
    assert pinned == set()


def test_the_role_is_nothing_more(place: Place):
    attributes = ask(
        place.url,
        """
        SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication
               OR rolbypassrls
               OR EXISTS (SELECT FROM pg_auth_members WHERE member = pg_roles.oid)
               OR EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid)
          FROM pg_roles
         WHERE rolname = 'tallystick_service'
        """,
    )
    assert attributes == {False}


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize(
    "statement",
    ["UPDATE {} SET tenant_id = tenant_id", "DELETE FROM {}", "TRUNCATE {}"],
)
def test_what_is_written_stays(place: Place, table: str, statement: LiteralString):
    assert denied(place, SQL(statement).format(Identifier(table)))


@pytest.mark.parametrize(
    "column",
    [
        "run_id",
        "number",
        "tenant_id",
        "contract_id",
        "presented_contract_id",
        "effect_class",
        "deadline_at",
    ],
)
def test_what_an_open_effect_is_stays(place: Place, column: str):
    statement = SQL("UPDATE effect_open SET {0} = {0}").format(Identifier(column))
    assert denied(place, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT token_hash FROM api_token",
        "SELECT FROM api_token WHERE token_hash = ''",
        "UPDATE api_token SET roles = '{admin}'",
        "UPDATE api_token SET token_hash = ''",
        "DELETE FROM api_token",
        "SELECT FROM alembic_version",
        "INSERT INTO tenant (tenant_id, slug) VALUES (gen_random_uuid(), 'mine')",
        "INSERT INTO legal_transition VALUES ('T1', 'NEW', 'SUCCEEDED')",
        "UPDATE service_key SET check_value = ''",
        "SELECT effect_is_whole()",
        "SELECT approval_is_bound()",
        "SELECT approval_goes_on()",
        "SELECT counts_only_rise()",
        "UPDATE approval SET expires_at = 'infinity'",
        "DELETE FROM approval",
        "DELETE FROM budget_slice",
        "UPDATE publisher_key SET public_key = ''",
        "DELETE FROM publisher_key",
        "SELECT audit_rebase()",
        "SELECT audit_keep('pin')",
        "INSERT INTO audit_progress VALUES (true, 0)",
        "CREATE OR REPLACE FUNCTION audit_position(xid8) RETURNS bigint LANGUAGE sql RETURN 0",
        "CREATE TABLE mine (id integer)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE INDEX ON effect (tool)",
        "CREATE TABLE event_2999 PARTITION OF event DEFAULT",
        "CREATE TRIGGER mine BEFORE INSERT ON effect EXECUTE FUNCTION effect_is_whole()",
        "CREATE POLICY mine ON effect USING (true)",
        "ALTER TABLE effect ADD COLUMN mine integer",
        "ALTER TABLE effect DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE effect_open DISABLE TRIGGER ALL",
        "ALTER TABLE event DROP CONSTRAINT event_follows_fkey",
        "DROP TABLE effect",
        "DROP FUNCTION effect_is_whole() CASCADE",
        "GRANT SELECT ON alembic_version TO tallystick_service",
        "SET session_replication_role = replica",
        "SET LOCAL row_security = off; SELECT FROM effect",
    ],
)
def test_the_service_may_not(place: Place, statement: LiteralString):
    assert denied(place, SQL(statement))


@pytest.mark.parametrize("statement", ["SELECT FROM {}", "DELETE FROM {}", "TRUNCATE {}"])
def test_no_partition_is_a_way_around(place: Place, statement: LiteralString):
    partitions = ask(
        place.url, "SELECT relname::text FROM pg_class WHERE relispartition AND relkind = 'r'"
    )
    assert len(partitions) > len(APPEND_ONLY)
    for partition in partitions:
        assert denied(place, SQL(statement).format(Identifier(partition)))


def denied(place: Place, statement: SQL | Composed) -> bool:
    """Tell whether the service lacks the privilege for a statement; any other error is raised."""
    try:
        with service(place.url, place.ours.tenant_id) as connection:
            connection.execute(statement)
            raise psycopg.Rollback
    except errors.InsufficientPrivilege:
        return True
    return False


# --- tenants --------------------------------------------------------------------------------------


def test_every_table_of_a_tenant_is_in_play(place: Place):
    tables = ask(
        place.url,
        """
        SELECT relname::text
          FROM pg_class
         WHERE relkind IN ('r', 'p') AND NOT relispartition
           AND relnamespace = 'public'::regnamespace
        """,
    )
    assert tables - OF_NO_TENANT == set(OF_A_TENANT)
    for table in OF_A_TENANT:
        assert first_row(place, table, place.ours)
        assert first_row(place, table, place.theirs)


def test_every_table_of_a_tenant_is_held_to_it(place: Place):
    policies = ask(
        place.url,
        """
        SELECT polrelid::regclass::text, polpermissive, polcmd::text, polroles::text,
               pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)
          FROM pg_policy
         WHERE polname = 'tenant_isolation'
        """,
    )
    rule = (True, "*", "{0}", "(tenant_id = current_tenant())", None)
    assert policies == {(table, *rule) for table in OF_A_TENANT}
    others = ask(
        place.url,
        """
        SELECT polrelid::regclass::text, polname::text, polpermissive, polcmd::text, polroles::text
          FROM pg_policy
         WHERE polname <> 'tenant_isolation'
        """,
    )
    assert others == {
        *((table, "shared_read", True, "r", "{0}") for table in SHARED),
        ("contract_state", "shared_lock", True, "w", "{0}"),
        ("contract_share_acceptance", "contract_is_offered", False, "a", "{0}"),
        *((table, "contract_is_visible", False, "a", "{0}") for table in OF_A_USE),
    }
    held = ask(place.url, "SELECT relname::text FROM pg_class WHERE relrowsecurity")
    assert held == set(OF_A_TENANT)


@pytest.mark.parametrize("table", sorted(MAY.keys() - OF_NO_TENANT))
def test_a_tenant_sees_its_own_rows_alone(place: Place, table: str):
    statement = SQL("SELECT DISTINCT tenant_id FROM {}").format(Identifier(table))
    for tenant_id, seen in [
        (place.ours.tenant_id, [(place.ours.tenant_id,)]),
        (place.theirs.tenant_id, [(place.theirs.tenant_id,)]),
        ("", []),
        (None, []),
    ]:
        with service(place.url, tenant_id) as connection:
            assert connection.execute(statement).fetchall() == seen


@pytest.mark.parametrize("table", sorted(MAY.keys() - OF_NO_TENANT))
def test_a_tenant_changes_its_own_rows_alone(place: Place, table: str):
    name, theirs = Identifier(table), place.theirs.tenant_id
    with service(place.url, place.ours.tenant_id) as connection:
        for column in MAY_UPDATE.get(table, "").split():
            statement = SQL("UPDATE {0} SET {1} = {1} WHERE tenant_id = %s")
            changed = connection.execute(statement.format(name, Identifier(column)), [theirs])
            assert changed.rowcount == 0
        if "DELETE" in MAY[table]:
            statement = SQL("DELETE FROM {} WHERE tenant_id = %s").format(name)
            assert connection.execute(statement, [theirs]).rowcount == 0


@pytest.mark.parametrize("table", sorted(MAY.keys() - OF_NO_TENANT))
def test_nobody_writes_for_another_tenant(place: Place, table: str):
    row = first_row(place, table, place.theirs)
    row.pop(WRITTEN_IN, None)
    for tenant_id in (place.ours.tenant_id, "", None):
        with (
            pytest.raises(errors.InsufficientPrivilege),
            service(place.url, tenant_id) as connection,
        ):
            paste(connection, table, row)


def test_the_service_makes_tables_for_a_year_at_most(place: Place):
    made = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'effect_outcome'::regclass"
    with service(place.url, None) as connection, connection.transaction(force_rollback=True):
        connection.execute("SELECT ensure_partitions(120)")
        assert connection.execute(made).fetchone() == (14,), "with the last month, and this one"


def test_references_are_counted_over_all_tenants_for_the_owner_of_a_contract(place: Place):
    ours = replace(place.ours, contract_id=uuid4())
    serve(place.url, ours, insert("contract", name=str(uuid4())), insert("pin", pin_id=uuid4()))
    # As the database's owner: the other tenant would have to be shown the version first.
    with psycopg.connect(place.url) as connection:
        for tenant_id in (ours.tenant_id, place.theirs.tenant_id):
            effect = replace(ours, tenant_id=tenant_id, run_id=new_uuid7())
            for write in (*PLANNED, insert("pin", pin_id=uuid4())):
                write(connection, effect)
        presented = insert("effect_open", presented_contract_id=ours.contract_id)
        theirs = another(place.theirs)
        for write in (*PLANNED[:2], presented):
            write(connection, theirs)

    def counted(tenant_id: UUID | None) -> set[tuple[Any, ...]]:
        with service(place.url, tenant_id) as connection:
            found = connection.execute(
                "SELECT kind, state, many FROM contract_references(%s)", [ours.contract_id]
            )
            return set(found.fetchall())

    assert counted(ours.tenant_id) == {("effects", "PLANNED", 3), ("pins", None, 3)}
    assert counted(place.theirs.tenant_id) == set()
    assert counted(None) == set()
