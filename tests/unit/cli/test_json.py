"""Every command, as a program sees it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from cli.app import app

CONTRACT = {
    "name": "billing.send_invoice",
    "version": "1.0.0",
    "kind": "write",
    "effect_class": "IDEMPOTENT",
    "state": "ACTIVE",
    "suspended": False,
    "schema_hash": "sha256:" + "a" * 64,
    "prompt_hash": "sha256:" + "b" * 64,
    "contract_digest": "sha256:" + "c" * 64,
    "credential": "billing",
    "credential_version": 19,
    "credential_current": 20,
    "published_at": "2026-01-02T03:04:05.678901Z",
    "published_by": "admin",
    "closed_at": None,
    "capabilities": ["invoice:write:tenant-42"],
    "document": {"name": "billing.send_invoice", "version": "1.0.0"},
    "reference": {
        "name": "billing.send_invoice",
        "version": "1.0.0",
        "schema_hash": "sha256:" + "a" * 64,
        "capabilities": ["invoice:write:tenant-42"],
        "effect_class": "IDEMPOTENT",
        "credential_version": 19,
    },
}
EFFECT_ID = "0198c5f2-7a3b-7c1d-8e2f-0123456789ab.9223372036854775807"
EFFECT = {
    "effect_id": EFFECT_ID,
    "run": "run_0187",
    "run_id": "0198c5f2-7a3b-7c1d-8e2f-0123456789ab",
    "effect": "effect_0187_03",
    "tool": "billing.send_invoice",
    "version": "1.0.0",
    "contract_digest": CONTRACT["contract_digest"],
    "effect_class": "IDEMPOTENT",
    "state": "SUCCEEDED",
    "fence": 2,
    "attempt": 1,
    "created": False,
    "planned_at": "2026-01-02T03:04:05Z",
    "due_at": None,
    "reason": "evidence",
    "arguments": {"invoice": "INV-7", "card": {"x-redacted": True}},
    "dispatch": None,
    "outcome": {
        "status": "SUCCEEDED",
        "revision": 1,
        "result": {"sent": True},
        "invalid_result": None,
        "error": None,
        "provider_reference": "P-1",
        "finished_at": "2026-01-02T03:05:05Z",
        "decided_by": "reconciler",
    },
}
PROPOSAL = {
    "step": 1,
    "fence": 2,
    "status": "proposed",
    "to": "FAILED",
    "by": "ada",
    "proposed_by": None,
    "reason": "never sent",
    "evidence": "the statement",
    "at": "2026-01-02T03:10:00Z",
}
QUARANTINED = {
    **EFFECT,
    "state": "QUARANTINED",
    "principal": "agent",
    "outcome": None,
    "proposal": PROPOSAL,
    "cause": "inconclusive",
    "quarantined_at": "2026-01-02T03:05:05Z",
    "age_seconds": 59.5,
}
CHOICE = {
    "choice": "FAILED",
    "meaning": "It did not take effect.",
    "people": 2,
    "allowed": True,
    "why_not": None,
}
HISTORY = {
    "events": [
        {
            "number": 1,
            "transition": "T1",
            "from_state": None,
            "to_state": "PLANNED",
            "fence": 0,
            "at": "2026-01-02T03:04:05Z",
            "actor": "agent",
            "reason": None,
        },
        {
            "number": 2,
            "transition": "T4",
            "from_state": "DISPATCHED",
            "to_state": "UNKNOWN",
            "fence": 1,
            "at": "2026-01-02T03:04:35Z",
            "actor": "sweeper",
            "reason": "lease_expired",
        },
    ],
    "attempts": [
        {
            "attempt": 1,
            "fence": 1,
            "worker_id": "0198c5f2-0000-7000-8000-000000000001",
            "dispatched_at": "2026-01-02T03:04:05Z",
            "lease_until": "2026-01-02T03:04:35Z",
            "credential_version": 19,
        }
    ],
    "evidence": [
        {
            "source": "http",
            "answer": "applied",
            "provider_reference": "P-1",
            "observed_at": "2026-01-02T03:05:00Z",
            "received_at": "2026-01-02T03:05:01Z",
            "detail": None,
        }
    ],
    "outcomes": [],
}
CREDENTIAL = {
    "name": "billing",
    "version": 2,
    "rotated_at": "2026-01-02T03:04:05Z",
    "revoked_at": "2026-01-03T03:04:05Z",
}
SHARE = {
    "tenant": "acme",
    "shared_at": "2026-01-02T03:04:05Z",
    "shared_by": "admin",
    "revoked_at": None,
}
OFFER = {
    "owner": "acme",
    "name": "billing.send_invoice",
    "version": "1.0.0",
    "accepted_at": "2026-01-02T03:04:05Z",
    "accepted_by": "admin",
    "revoked_at": None,
}
TOKEN_ID = "0198c5f2-0000-7000-8000-000000000002"
TOKEN = {
    "token_id": TOKEN_ID,
    "name": "agent",
    "prefix": "tk_aaaaaaaa",
    "principal": "agent",
    "roles": ["operator", "runtime"],
    "state": "active",
    "created_at": "2026-01-02T03:04:05Z",
    "created_by": "admin",
    "expires_at": "2026-04-02T03:04:05Z",
    "last_used_at": None,
    "revoked_at": None,
    "replaces": None,
}
SIGNATURE = {
    "key_id": "ed25519:0123456789abcdef",
    "name": "grace",
    "is_valid": False,
    "signature": "ab" * 64,
    "signed_at": "2026-01-02T03:04:05Z",
    "signed_by": "agent",
    "revoked_at": "2026-01-03T03:04:05Z",
}
CONTRACT["signatures"] = [SIGNATURE]
KEY = {
    "key_id": "ed25519:0123456789abcdef",
    "name": "grace",
    "public_key": "a" * 64,
    "added_at": "2026-01-02T03:04:05Z",
    "added_by": "admin",
    "revoked_at": "2026-01-03T03:04:05Z",
    "revoked_by": "admin",
    "reason": "lost",
}
POLICY = {
    "required": True,
    "required_at": "2026-01-02T03:04:05Z",
    "required_by": "admin",
    "unsigned": ["billing.send_invoice@1.0.0"],
}
POLICY_REVISION = {
    "policy": "safe-refund",
    "revision": 2,
    "current_revision": 3,
    "digest": CONTRACT["contract_digest"],
    "published_at": "2026-01-02T03:04:05Z",
    "published_by": "admin",
    "assigned_to": ["*", "agent"],
}
APPROVAL = {
    "approval_id": EFFECT_ID,
    "effect_id": EFFECT_ID,
    "run": "run_0187",
    "tool": "billing.send_invoice",
    "version": "1.0.0",
    "effect_class": "IDEMPOTENT",
    "status": "pending",
    "question": "Refunds above 100 are for a person.",
    "rule": "large-refund",
    "policy": {"policy": "safe-refund", "revision": 2},
    "contract_digest": CONTRACT["contract_digest"],
    "fingerprint": "ab" * 32,
    "credential_version": 19,
    "requested_by": "agent",
    "requested_at": "2026-01-02T03:04:05Z",
    "expires_at": "2026-01-03T03:04:05Z",
    "decided_by": "grace",
    "decided_at": "2026-01-02T04:04:05Z",
    "reason": "It is hers.",
    "arguments": {"invoice": "INV-7", "card": {"x-redacted": True}, "lines": [{"sku": "s"}]},
}
APPROVAL_EVENT = {
    "step": 0,
    "from_status": "new",
    "to_status": "pending",
    "actor": "agent",
    "reason": "Refunds above 100 are for a person.",
    "at": "2026-01-02T03:04:05Z",
}
APPROVAL_PATH = f"/v1/approvals/{EFFECT_ID}"
RUN_ENTRY = {
    "at": "2026-01-02T03:04:05.5Z",
    "effect_id": EFFECT_ID,
    "tool": "billing.send_invoice",
    "version": "1.0.0",
    "principal": "agent",
    "policy": {"policy": "safe-refund", "revision": 2},
}
RUN = {
    "run": "run_0187",
    "run_id": "0198c5f2-7a3b-7c1d-8e2f-0123456789ab",
    "subject": {"customer_id": "C-1"},
    "entries": [
        {
            **RUN_ENTRY,
            "kind": "effect",
            "decision": "needs_human",
            "state": "SUCCEEDED",
            "reason": "reported",
            "approval": APPROVAL,
        },
        {
            **RUN_ENTRY,
            "kind": "refusal",
            "gate": "permission",
            "code": "not_found",
            "true_code": "not_owner",
            "rule": "a-rule",
            "message": "No invoice INV-7 is available.",
        },
    ],
    "next": "page-2",
}
ASSIGNMENT = {"policy": "safe-refund", "principal": "agent", "assigned": True}
TOOL = "/v1/contracts/billing.send_invoice/1.0"
ROLLOUT = "/v1/rollouts/billing.send_invoice/1.0"
LIFECYCLE = {"name": "billing.send_invoice", "version": "1.0.0", "state": "ACTIVE"}
RESOLUTION = {
    "contract": CONTRACT,
    "capabilities": ["invoice:write:tenant-42"],
    "lease": "signed.lease.token",
    "lease_expires_at": "2026-01-02T04:00:00Z",
}

JUDGED = {"verdict": "compatible", "proof": {"prover": "tallystick", "steps": []}}
FAILING = {
    "verdict": "incompatible",
    "witness": {
        "value": {"invoice": "INV-7"},
        "violations": [
            {"pointer": "/currency", "keyword": "required", "message": "this property is required"}
        ],
    },
}
OPEN = {
    "verdict": "undecided",
    "obstacle": {"path": "/note", "keyword": "pattern", "reason": "budget"},
}
COMPARISON = {
    "compared": "contracts",
    "old": {"name": "billing.send_invoice", "version": "1.0.0"},
    "new": {"name": "billing.send_invoice", "version": "2.0.0"},
    "producer": "declared",
    "verdict": "compatible",
    "old_calls": {"declared": JUDGED, "any": FAILING},
    "new_results": {"declared": JUDGED, "any": JUDGED, "strict": FAILING},
    "new_calls": {"declared": FAILING, "any": FAILING},
    "old_results": {"declared": OPEN, "any": OPEN, "strict": OPEN},
    "changes": [
        {
            "path": "/input_schema/properties/currency",
            "kind": "required_added",
            "new": {"type": "string"},
            "breaks": ["new_calls"],
            "is_prompt_facing": False,
            "why": "`currency` is new and required",
        }
    ],
    "bump": "minor",
    "rule": ["Old calls and new results are proven compatible."],
    "breaches": [],
    "review": [{"code": "default_changed", "path": "/x", "detail": "The default changes."}],
    "warnings": [{"code": "accepts_nothing", "path": "/x", "detail": "No arguments satisfy it."}],
    "is_equivalent": False,
}

# Every command that asks a registry, with arguments, and what the registry answers.
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "publish": (
        ["FILE"],
        {
            "POST /v1/contracts": {
                **CONTRACT,
                "published": True,
                "equivalent_to": ["1.0.0"],
                "warnings": COMPARISON["warnings"],
            }
        },
    ),
    "compare": (
        ["billing.send_invoice@1.0", "billing.send_invoice@2.0"],
        {"POST /v1/compare": COMPARISON},
    ),
    "show": (["billing.send_invoice@1.0"], {f"GET {TOOL}": CONTRACT}),
    "list": ([], {"GET /v1/contracts": {"contracts": [CONTRACT]}}),
    "resolve": (
        ["billing.send_invoice@1.0"],
        {f"GET {TOOL}": CONTRACT, "POST /v1/resolve": RESOLUTION},
    ),
    "attest": (
        ["billing.send_invoice@1.0", "--reason", "rotated"],
        {
            f"POST {TOOL}/attest": {
                "name": "billing.send_invoice",
                "version": "1.0.0",
                "credential": "billing",
                "credential_version": 20,
            }
        },
    ),
    "retire": (
        ["billing.send_invoice@1.0"],
        {f"POST {ROLLOUT}/retire": {**LIFECYCLE, "state": "RETIRED"}},
    ),
    "rollback": (["billing.send_invoice@1.0"], {f"POST {ROLLOUT}/rollback": LIFECYCLE}),
    "effects list": ([], {"GET /v1/effects": {"effects": [EFFECT], "next": "page-2"}}),
    "effects show": ([EFFECT_ID], {f"GET /v1/effects/{EFFECT_ID}": {**EFFECT, **HISTORY}}),
    "effects resolve": (
        [EFFECT_ID, "--to", "succeeded", "--reason", "r", "--evidence", "e", "--by", "ada"],
        {f"POST /v1/effects/{EFFECT_ID}/resolve": EFFECT},
    ),
    "effects retry": (
        [EFFECT_ID, "--reason", "r"],
        {f"POST /v1/effects/{EFFECT_ID}/retry": EFFECT},
    ),
    "quarantine list": ([], {"GET /v1/quarantine": {"effects": [QUARANTINED], "next": None}}),
    "quarantine show": (
        [EFFECT_ID],
        {
            f"GET /v1/quarantine/{EFFECT_ID}": {
                **QUARANTINED,
                **HISTORY,
                "advice": "Ask.",
                "choices": [CHOICE],
            }
        },
    ),
    "quarantine resolve": (
        [EFFECT_ID, "--to", "failed", "--reason", "r", "--evidence", "e"],
        {f"POST /v1/effects/{EFFECT_ID}/resolve": QUARANTINED},
    ),
    "quarantine abandon": (
        [EFFECT_ID, "--reason", "r", "--evidence", "e"],
        {f"POST /v1/effects/{EFFECT_ID}/resolve": EFFECT},
    ),
    "quarantine withdraw": (
        [EFFECT_ID, "--reason", "r"],
        {f"POST /v1/effects/{EFFECT_ID}/withdraw": {**EFFECT, "proposal": None}},
    ),
    "quarantine migrate": (
        [EFFECT_ID, "--to", "2.0", "--reason", "r"],
        {f"POST /v1/effects/{EFFECT_ID}/migrate": {**EFFECT, "supersedes": EFFECT_ID}},
    ),
    "effects evidence": (
        [EFFECT_ID, "--answer", "applied", "--detail", "ticket 7"],
        {f"POST /v1/effects/{EFFECT_ID}/evidence": EFFECT},
    ),
    "effects cancel": (
        [EFFECT_ID, "--reason", "no longer wanted"],
        {f"POST /v1/effects/{EFFECT_ID}/cancel": {**EFFECT, "outcome": None}},
    ),
    "approvals list": ([], {"GET /v1/approvals": {"approvals": [APPROVAL], "next": EFFECT_ID}}),
    "approvals show": (
        [EFFECT_ID],
        {f"GET {APPROVAL_PATH}": {**APPROVAL, "events": [APPROVAL_EVENT]}},
    ),
    "approvals approve": (
        [EFFECT_ID],
        {f"POST {APPROVAL_PATH}/approve": {**APPROVAL, "status": "approved"}},
    ),
    "approvals reject": (
        [EFFECT_ID, "--reason", "not hers"],
        {f"POST {APPROVAL_PATH}/reject": {**APPROVAL, "status": "rejected"}},
    ),
    "runs begin": (
        ["run_0187", "--subject", "customer_id=C-1"],
        {
            "PUT /v1/runs/run_0187": {
                "run": "run_0187",
                "run_id": RUN["run_id"],
                "subject": RUN["subject"],
                "set_by": "admin",
                "set_at": "2026-01-02T03:04:05Z",
            }
        },
    ),
    "runs show": (["run_0187"], {"GET /v1/runs/run_0187": RUN}),
    "credentials create": (
        ["billing"],
        {"POST /v1/credentials": {"name": "billing", "version": 1}},
    ),
    "credentials rotate": (
        ["billing"],
        {"POST /v1/credentials/billing/rotate": {"name": "billing", "version": 2}},
    ),
    "credentials revoke": (
        ["billing", "--reason", "leaked"],
        {"POST /v1/credentials/billing/revoke": CREDENTIAL},
    ),
    "credentials list": (
        [],
        {"GET /v1/credentials": {"credentials": [CREDENTIAL]}},
    ),
    "share": (
        ["billing.send_invoice@1.0", "acme"],
        {f"POST {TOOL}/shares": SHARE},
    ),
    "unshare": (
        ["billing.send_invoice@1.0", "acme", "--reason", "moved"],
        {f"POST {TOOL}/shares/acme/revoke": SHARE},
    ),
    "shares": (["billing.send_invoice@1.0"], {f"GET {TOOL}/shares": {"shares": [SHARE]}}),
    "offers": ([], {"GET /v1/shares": {"offers": [OFFER]}}),
    "accept": (["billing.send_invoice@1.0", "acme"], {"POST /v1/shares/accept": OFFER}),
    "withdraw": (
        ["billing.send_invoice@1.0", "acme", "--reason", "moved"],
        {"POST /v1/shares/withdraw": OFFER},
    ),
    "grants add": (
        ["agent", "invoice:write:tenant-42"],
        {"POST /v1/grants": {"principal": "agent", "capability": "invoice:write:tenant-42"}},
    ),
    "grants remove": (["agent", "invoice:write:tenant-42"], {"DELETE /v1/grants": {}}),
    "grants list": (
        [],
        {
            "GET /v1/grants": {
                "grants": [
                    {
                        "principal": "agent",
                        "capability": "invoice:write:tenant-42",
                        "granted_at": "2026-01-02T03:04:05Z",
                        "granted_by": "admin",
                    }
                ]
            }
        },
    ),
    "keys add": (["grace", "a" * 64], {"POST /v1/keys": KEY}),
    "keys list": ([], {"GET /v1/keys": {"keys": [KEY]}}),
    "keys revoke": (
        [KEY["key_id"], "--reason", "lost"],
        {f"POST /v1/keys/{KEY['key_id']}/revoke": {**KEY, **POLICY}},
    ),
    "keys require": (["on", "--confirm"], {"POST /v1/signature-policy": POLICY}),
    "policy publish": (
        ["FILE"],
        {
            "POST /v1/policies": {
                **POLICY_REVISION,
                "published": True,
                "warnings": [
                    {"code": "fact_unread", "line": 4, "column": 5, "message": "Nothing reads it."}
                ],
            }
        },
    ),
    "policy show": (
        ["safe-refund", "--revision", "2"],
        {"GET /v1/policies/safe-refund": {**POLICY_REVISION, "text": "id: safe-refund\nrules:\n"}},
    ),
    "policy list": ([], {"GET /v1/policies": {"policies": [POLICY_REVISION]}}),
    "policy assign": (
        ["safe-refund", "--for", "agent"],
        {"POST /v1/policies/safe-refund/assignments": ASSIGNMENT},
    ),
    "policy unassign": (
        ["safe-refund", "--for-everybody"],
        {"DELETE /v1/policies/safe-refund/assignments": {}},
    ),
    "audit seals": (
        [],
        {
            "GET /v1/audit/seals": {
                "seals": [
                    {
                        "number": 7,
                        "sealed_at": "2026-01-02T03:04:05.678901Z",
                        "leaves": 12,
                        "digest": CONTRACT["contract_digest"],
                    }
                ],
                "next": 7,
            }
        },
    ),
    "audit keys": (
        [],
        {
            "GET /v1/audit/keys": {
                "keys": [{"key_id": "k1", "public_key": "ab" * 32, "is_current": True}]
            }
        },
    ),
    "whoami": (
        [],
        {"GET /v1/whoami": {"tenant": "default", "principal": "admin", "roles": ["admin"]}},
    ),
    "tokens create": (
        ["agent", "--role", "runtime", "--expires-in", "90d"],
        {"POST /v1/tokens": {**TOKEN, "token": "tk_" + "a" * 43}},
    ),
    "tokens list": ([], {"GET /v1/tokens": {"tokens": [TOKEN]}}),
    "tokens revoke": ([TOKEN_ID], {f"POST /v1/tokens/{TOKEN_ID}/revoke": TOKEN}),
    "tokens rotate": (
        [TOKEN_ID, "--overlap", "10m"],
        {f"POST /v1/tokens/{TOKEN_ID}/rotate": {**TOKEN, "token": "tk_" + "b" * 43}},
    ),
    "version": ([], {}),
}
# These start the service itself, which takes a database, or write and read an export.
SERVICE = {"init", "serve", "reconcile", "demo", "lock", "tenants create", "tenants recover"}
SERVICE |= {"tenants list", "audit export", "audit verify"}


# These make or take a private key: test_keys.py.
SIGNING = {"keys generate", "sign"}


# These read files alone: test_policy_files.py.
FILES = {"policy lint", "policy test", "policy explain", "policy run", "policy replay"}
FILES |= {"policy presets", "policy init"}


def commands(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield " ".join([*path, name]), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_every_command_has_a_case():
    assert set(COMMANDS) == set(CASES) | SERVICE | SIGNING | FILES


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json_and_explains_itself(name):
    command = COMMANDS[name]
    assert "--json" in {option for each in command.params for option in each.opts}
    assert command.help


@pytest.fixture
def arguments(write_contract):
    def of(name):
        return [
            *name.split(),
            *(each if each != "FILE" else write_contract() for each in CASES[name][0]),
        ]

    return of


@pytest.mark.parametrize("name", CASES)
def test_stdout_is_one_json_value_and_nothing_else(name, run, wire, arguments):
    for route, body in CASES[name][1].items():
        wire.answer(route, body)
    result = run(*arguments(name), "--json")
    assert result.stderr == ""
    assert result.exit_code == 0
    assert isinstance(json.loads(result.stdout), dict)


@pytest.mark.parametrize("name", [name for name in CASES if name != "version"])
def test_a_refusal_is_a_problem_document_on_stderr(name, run, wire, arguments):
    for route in CASES[name][1]:
        wire.refuse(route, "forbidden", status=403, pointer="/x", facts={"role": "agent"})
    result = run(*arguments(name), "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert json.loads(result.stderr) == {
        "type": "urn:tallystick:problem:forbidden",
        "title": "The token does not allow this.",
        "detail": "This is forbidden.",
        "code": "forbidden",
        "retryable": False,
        "pointer": "/x",
        "facts": {"role": "agent"},
    }


def hostile(value: Any) -> Any:
    """Put a terminal's control sequence, markup and a forged line in every free text."""
    if isinstance(value, dict):
        return {key: hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    if isinstance(value, str) and not value.startswith("2026-"):
        return value + "\x1b[31m\x9b[/bold]\u202eforged\nline"
    return value


@pytest.mark.parametrize("name", [name for name in CASES if name != "version"])
def test_what_others_wrote_cannot_drive_the_terminal(name, run, wire, arguments):
    for route, body in CASES[name][1].items():
        wire.answer(route, hostile(body))
    result = run(*arguments(name), env={"COLUMNS": "1000"})
    # A verdict that is none of ours is no "compatible".
    assert result.exit_code == (1 if name == "compare" else 0)
    assert result.stdout
    assert not {"\x1b", "\x9b", "\u202e"} & set(result.stdout)
    assert "\nline" not in result.stdout
