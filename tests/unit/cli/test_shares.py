"""Sharing and revoking, as a person sees them."""

import pytest

from tests.unit.cli.test_contracts import ANSWER, SUMMARY, TOOL

TOOL_NAME = "billing.send_invoice@1.0"
SHARE = {
    "tenant": "acme",
    "shared_at": "2026-01-02T03:04:05Z",
    "shared_by": "admin",
    "revoked_at": None,
}


def test_share_and_unshare_say_what_holds_now(run, wire):
    wire.answer(f"POST {TOOL}/shares", SHARE, status=201)
    ended = {**SHARE, "revoked_at": "2026-01-03T03:04:05Z"}
    wire.answer(f"POST {TOOL}/shares/acme/revoke", ended)
    assert run("share", TOOL_NAME, "acme").stdout.splitlines() == [
        "  tenant     acme",
        "  shared at  2026-01-02 03:04:05Z",
        "  shared by  admin",
    ]
    result = run("unshare", TOOL_NAME, "acme", "--reason", "moved")
    assert "  revoked at  2026-01-03 03:04:05Z" in result.stdout.splitlines()
    assert wire.sent() == [
        (f"POST {TOOL}/shares", {"tenant": "acme"}),
        (f"POST {TOOL}/shares/acme/revoke", {"reason": "moved"}),
    ]


def test_shares_is_a_table_or_says_that_there_are_none(run, wire):
    wire.answer(f"GET {TOOL}/shares", {"shares": [SHARE]}, {"shares": []})
    rows = [" ".join(line.split()) for line in run("shares", TOOL_NAME).stdout.splitlines()]
    assert rows == ["Shared with Since By Until", "acme 2026-01-02 03:04:05Z admin"]
    assert run("shares", TOOL_NAME).stdout == "It is shared with nobody.\n"


OFFER = {
    "owner": "acme",
    "name": "billing.send_invoice",
    "version": "1.0.0",
    "accepted_at": None,
    "accepted_by": None,
    "revoked_at": None,
}
ACCEPTED = {**OFFER, "accepted_at": "2026-01-02T03:04:05Z", "accepted_by": "admin"}


def test_accept_and_withdraw_say_what_holds_now(run, wire):
    wire.answer("POST /v1/shares/accept", ACCEPTED)
    wire.answer("POST /v1/shares/withdraw", OFFER)
    assert run("accept", TOOL_NAME, "acme").stdout.splitlines() == [
        "  owner        acme",
        "  name         billing.send_invoice",
        "  version      1.0.0",
        "  accepted at  2026-01-02 03:04:05Z",
        "  accepted by  admin",
    ]
    result = run("withdraw", TOOL_NAME, "acme", "--reason", "moved")
    assert "accepted" not in result.stdout
    named = {"owner": "acme", "name": "billing.send_invoice", "version": "1.0"}
    assert wire.sent() == [
        ("POST /v1/shares/accept", named),
        ("POST /v1/shares/withdraw", {**named, "reason": "moved"}),
    ]


def test_offers_is_a_table_or_says_that_there_are_none(run, wire):
    wire.answer("GET /v1/shares", {"offers": [ACCEPTED, OFFER]}, {"offers": []})
    rows = [" ".join(line.split()) for line in run("offers").stdout.splitlines()]
    assert rows == [
        "Shared by Tool Version Accepted Taken back",
        "acme billing.send_invoice 1.0.0 2026-01-02 03:04:05Z",
        "acme billing.send_invoice 1.0.0",
    ]
    assert run("offers").stdout == "Nobody shares anything with this tenant.\n"


def test_what_another_tenant_shares_names_it(run, wire):
    shared = {"owner": "acme", "published_by": None}
    wire.answer("GET /v1/contracts", {"contracts": [{**SUMMARY, **shared}]})
    wire.answer(f"GET {TOOL}", {**ANSWER, **shared})
    assert "shared by acme" in run("list").stdout
    shown = run("show", TOOL_NAME).stdout.splitlines()
    assert "  published        2026-01-02 03:04:05Z by acme, which shares it" in shown


@pytest.mark.parametrize(
    ("bound", "current", "told"),
    [(0, None, "billing (attest)"), (3, None, "billing v3 (revoked)"), (3, 3, "billing v3")],
)
def test_a_credential_that_is_not_in_force_is_marked(run, wire, bound, current, told):
    credential = {"credential": "billing", "credential_version": bound}
    wire.answer(f"GET {TOOL}", {**ANSWER, **credential, "credential_current": current})
    assert f"  credential       {told}" in run("show", TOOL_NAME).stdout.splitlines()
