"""Valid things with one fact changed per test."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from registry.entry import Entry
from tallystick.evidence_source import EvidenceQuestion
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

SEND_INVOICE: dict[str, Any] = {
    "name": "billing.send_invoice",
    "version": "2.1",
    "description": "Send an invoice to a customer.",
    "input_schema": {
        "type": "object",
        "properties": {
            "customer_id": {"type": "string", "pattern": "^C-[0-9]+$"},
            "amount_cents": {"type": "integer", "minimum": 1},
            "memo": {"type": "string"},
        },
        "required": ["customer_id", "amount_cents"],
        "additionalProperties": False,
    },
    "output_schema": {
        "type": "object",
        "properties": {"invoice_id": {"type": "string"}},
        "required": ["invoice_id"],
    },
    "capabilities": ["invoice:write:{tenant}"],
    "effect_class": "IDEMPOTENT",
    "idempotency": {
        "header": "Idempotency-Key",
        "retention_seconds": 86400,
        "conflict": {"statuses": [409]},
    },
    "credential": "billing-api",
    "lease_seconds": 30,
    "settle_seconds": 0,
}

ARGUMENTS: dict[str, Any] = {"customer_id": "C-42", "amount_cents": 1250}


def a_contract(**changes: Any) -> dict[str, Any]:
    """Return the document of a tool that sends invoices; a change of None leaves a field out.

    It is the caller's own to the last part: what one test changes in it, no other one sees.
    """
    changed = deepcopy(SEND_INVOICE) | changes
    return {name: value for name, value in changed.items() if value is not None}


def a_contract_of(effect_class: str, **changes: Any) -> dict[str, Any]:
    """Return a contract of one effect class, named after it."""
    is_idempotent = effect_class == "IDEMPOTENT"
    name = f"tools.{effect_class.lower()}"
    idempotency = SEND_INVOICE["idempotency"] if is_idempotent else None
    facts = {"name": name, "effect_class": effect_class, "idempotency": idempotency}
    return a_contract(**(facts | changes))


def an_entry(lifecycle: Lifecycle = Lifecycle.ACTIVE, **changes: Any) -> Entry:
    """Return a published contract that has its credential and no closing mark."""
    return Entry(
        contract_id=UUID(int=1),
        contract=Contract.parse(a_contract(**changes)),
        published_at=NOW,
        published_by="admin",
        lifecycle=lifecycle,
        suspended=False,
        is_signed=False,
        signature_required=False,
        closed_at=None,
        credential_bound=1,
        credential_current=1,
        read_at=NOW,
    )


def a_policy(name: str = "safe-refund", *, calls_max: int = 8) -> str:
    """Return the text of a policy under which refunds need a look at the order first."""
    return f"""\
version: "0.1"
id: {name}
title: Safe refunds
defaults:
  unknown_tools: block
tools:
  lookup_order: {{risk: read}}
  issue_refund: {{risk: high_risk}}
budgets:
  max_total_calls: {calls_max}
rules:
  - name: refund-requires-order-lookup
    type: require_prior_call
    tool: issue_refund
    prior_tool: lookup_order
    effect: block
"""


def a_question(effect_id: str, key: str = "key", arguments: Any = ARGUMENTS) -> EvidenceQuestion:
    """Return what is asked about an effect."""
    return EvidenceQuestion(
        effect_id, key, arguments, tenant="default", tool="billing.send_invoice", version="2.1.0"
    )


def http_evidence(port: int, **changes: Any) -> dict[str, Any]:
    """Return how a provider on loopback is asked for an effect."""
    return {
        "source": "http",
        "consistency": "read_after_write",
        "lag_seconds": 0,
        "http": {"url": f"http://127.0.0.1:{port}/effects/{{effect_id}}", "timeout_seconds": 2},
        "answer": {
            "absent_statuses": [404],
            "state": "/status",
            "applied": ["applied"],
            "rejected": ["rejected"],
            "in_progress": ["pending"],
            "reference": "/id",
            "bind": {"pointer": "/effect_id", "equals": "effect_id"},
            "match": {"/amount_cents": "/amount_cents"},
        },
    } | changes


def http_listing(port: int, **changes: Any) -> dict[str, Any]:
    """Return how the reference provider lists its invoices."""
    return {
        "url": f"http://127.0.0.1:{port}/bookings?limit=2&since={{since_unix}}",
        "timeout_seconds": 2,
        "items": "/bookings",
        "next": "/next",
        "parameter": "after",
        "where": {"/kind": "invoices"},
        "id": "/effect_id",
        "state": "/status",
        "applied": ["booked"],
        "rejected": ["declined"],
        "in_progress": ["pending"],
        "reference": "/reference",
        "bind": {"pointer": "/idempotency_key", "equals": "idempotency_key"},
        "match": {"/body/amount_cents": "/amount_cents"},
    } | changes
