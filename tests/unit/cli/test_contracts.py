"""Publish, list, show and resolve, as a person sees them."""

import json

import pytest

HASH = "sha256:" + "a" * 64
SUMMARY = {
    "name": "billing.send_invoice",
    "version": "1.0.0",
    "kind": "write",
    "effect_class": "IDEMPOTENT",
    "state": "ACTIVE",
    "suspended": False,
    "schema_hash": HASH,
    "contract_digest": "sha256:" + "c" * 64,
    "credential": None,
    "credential_version": 0,
    "published_at": "2026-01-02T03:04:05.678901+00:00",
    "published_by": "admin",
}
REFERENCE = {
    "name": "billing.send_invoice",
    "version": "1.0.0",
    "schema_hash": HASH,
    "capabilities": ["invoice:read:t", "invoice:write:t"],
    "effect_class": "IDEMPOTENT",
    "credential_version": 0,
}
ANSWER = {
    **SUMMARY,
    "prompt_hash": "sha256:" + "b" * 64,
    "capabilities": ["invoice:read:t", "invoice:write:t"],
    "credential_current": 0,
    "closed_at": None,
    "document": {"name": "billing.send_invoice", "description": "Sends an invoice für Zoë."},
    "reference": REFERENCE,
}
TOOL = "/v1/contracts/billing.send_invoice/1.0"
RESOLUTION = {
    "contract": ANSWER,
    "capabilities": ["invoice:read:t"],
    "lease": "signed.lease.token",
    "lease_expires_at": "2026-01-02T04:00:00Z",
}


def test_publish_says_which_were_there_already(run, wire, write_contract):
    wire.answer("POST /v1/contracts", {**ANSWER, "published": True}, status=201)
    wire.answer("POST /v1/contracts", {**ANSWER, "version": "1.1.0", "published": False})
    files = [write_contract("a.json"), write_contract("b.json", version="1.1")]
    result = run("publish", *files)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"published billing.send_invoice@1.0.0  {HASH}",
        f"already published billing.send_invoice@1.1.0  {HASH}",
    ]
    bodies = [body for _, body in wire.sent()]
    assert [body["document"]["version"] for body in bodies] == ["1.0.0", "1.1.0"]
    assert [list(body) for body in bodies] == [["document"], ["document"]]


def test_publish_reads_yaml(run, wire, tmp_path):
    wire.answer("POST /v1/contracts", {**ANSWER, "published": True}, status=201)
    file = tmp_path / "send.yaml"
    file.write_text(
        "name: billing.send_invoice\n"
        "version: '1.0'\n"
        "description: Sends an invoice.\n"
        "input_schema: {type: object}\n"
        "capabilities: ['invoice:write:{tenant}']\n"
        "effect_class: UNKNOWN\n",
        encoding="utf-8",
    )
    assert run("publish", str(file)).exit_code == 0
    assert wire.sent()[0][1]["document"]["effect_class"] == "UNKNOWN"


def test_publish_sends_the_review(run, wire, write_contract):
    wire.answer("POST /v1/contracts", {**ANSWER, "published": True}, status=201)
    run("publish", write_contract(), "--reviewer", "ada", "--reason", "units agreed")
    review = wire.sent()[0][1]["review"]
    assert review == {"reviewer": "ada", "reason": "units agreed"}


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"effect_class": "SOMETIMES"}, "/effect_class"),
        ({"surprise": 1}, "/surprise"),
        ({"input_schema": {"type": "objekt"}}, "/input_schema/type"),
    ],
)
def test_an_invalid_contract_is_refused_before_anything_is_sent(
    fields, pointer, run, wire, write_contract
):
    good, bad = write_contract("good.json"), write_contract("bad.json", **fields)
    result = run("publish", good, bad)
    assert result.exit_code == 1
    assert f"Error: {bad}: " in result.stderr
    assert "[invalid_contract]" in result.stderr
    assert f"at   {pointer}" in result.stderr
    assert wire.requests == []

    problem = json.loads(run("publish", bad, "--json").stderr)
    assert (problem["code"], problem["pointer"]) == ("invalid_contract", pointer)


def test_a_refusal_in_the_middle_tells_what_was_published_before(run, wire, write_contract):
    wire.answer("POST /v1/contracts", {**ANSWER, "published": True}, status=201)
    wire.refuse("POST /v1/contracts", "contract_exists")
    files = [write_contract("a.json"), write_contract("b.json", version="1.1")]
    result = run("publish", *files, "--json")
    assert result.exit_code == 1
    assert [each["version"] for each in json.loads(result.stdout)["contracts"]] == ["1.0.0"]
    assert json.loads(result.stderr)["code"] == "contract_exists"


def test_list_asks_for_what_was_given(run, wire):
    wire.answer("GET /v1/contracts", {"contracts": []})
    result = run("list", "--name", "billing.send_invoice", "--state", "migrating")
    assert result.stdout == "No contract matches.\n"
    query = dict(wire.requests[0].url.params)
    assert query == {"name": "billing.send_invoice", "state": "MIGRATING"}


def test_list_shows_what_needs_care(run, wire):
    suspended = {**SUMMARY, "suspended": True, "credential": "billing", "credential_version": 19}
    wire.answer("GET /v1/contracts", {"contracts": [suspended]})
    out = " ".join(run("list", env={"COLUMNS": "200"}).stdout.split())
    assert "billing.send_invoice@1.0.0 ACTIVE (suspended) IDEMPOTENT billing v19 aaaaaaaa" in out


def test_show_writes_every_digest_whole(run, wire):
    rotated = {"credential": "billing", "credential_version": 19, "credential_current": 20}
    wire.answer(f"GET {TOOL}", {**ANSWER, **rotated})
    lines = run("show", "billing.send_invoice@1.0").stdout.splitlines()
    assert lines[0] == "billing.send_invoice@1.0.0  ACTIVE"
    shown = {tuple(line.rsplit("  ", 1)) for line in lines[1:]}
    assert ("  schema hash    ", HASH) in shown
    assert "  credential       billing v19 (rotated to 20: attest)" in lines
    assert "  published        2026-01-02 03:04:05Z by admin" in lines
    assert '  "description": "Sends an invoice für Zoë."' in lines


def test_resolve_presents_the_registrys_own_reference_and_says_so(run, wire):
    wire.answer(f"GET {TOOL}", ANSWER)
    wire.answer("POST /v1/resolve", RESOLUTION)
    result = run("resolve", "billing.send_invoice@1.0", "--capability", "invoice:read:t")
    assert wire.sent()[1] == ("POST /v1/resolve", {**REFERENCE, "capabilities": ["invoice:read:t"]})
    assert result.stdout.splitlines()[-1] == (
        "Not given, so taken from the registry's own reference: "
        "schema_hash, effect_class, credential_version."
    )
    assert "signed.lease.token" not in result.stdout


def test_resolve_with_all_parts_given_takes_none(run, wire):
    wire.answer(f"GET {TOOL}", ANSWER)
    wire.refuse("POST /v1/resolve", "tool_schema_drift")
    result = run(
        "resolve",
        "billing.send_invoice@1.0",
        *("--schema-hash", "sha256:" + "0" * 64),
        *("--capability", "invoice:read:t"),
        *("--capability", "invoice:write:t"),
        *("--effect-class", "pure"),
        *("--credential-version", "0"),
    )
    assert result.exit_code == 1
    assert "registry show" in result.stderr
    assert wire.sent()[1][1] == {
        "name": "billing.send_invoice",
        "version": "1.0.0",
        "schema_hash": "sha256:" + "0" * 64,
        "capabilities": ["invoice:read:t", "invoice:write:t"],
        "effect_class": "PURE",
        "credential_version": 0,
    }
