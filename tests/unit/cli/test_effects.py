"""Effects, as a person sees them."""

from datetime import UTC, datetime

import pytest

EFFECT_ID = "0198c5f2-7a3b-7c1d-8e2f-0123456789ab.9223372036854775807"
EFFECT = {
    "effect_id": EFFECT_ID,
    "run": "run_0187",
    "effect": "effect_0187_03",
    "tool": "billing.send_invoice",
    "version": "1.0.0",
    "effect_class": "NON_RETRYABLE",
    "state": "QUARANTINED",
    "fence": 2,
    "attempt": 1,
    "planned_at": "2026-01-02T03:04:05Z",
    "due_at": None,
    "reason": "no answer that settles it",
    "arguments": {"invoice": "INV-7"},
    "dispatch": None,
    "outcome": None,
}


def test_an_id_can_be_copied_whole_from_a_narrow_terminal(run, wire):
    wire.answer("GET /v1/effects", {"effects": [EFFECT], "next": None})
    result = run("effects", "list")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert EFFECT_ID in result.stdout
    assert "QUARANTINED" in result.stdout
    assert "billing.send_invoice@1.0.0" in result.stdout


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ([], {"open": "true", "limit": "50"}),
        (["--all"], {"limit": "50"}),
        (["--state", "succeeded"], {"state": "SUCCEEDED", "limit": "50"}),
        (
            ["--run", "r", "--tool", "t", "--limit", "7", "--after", "page-2", "--open"],
            {"open": "true", "run": "r", "tool": "t", "limit": "7", "after": "page-2"},
        ),
    ],
)
def test_list_asks_for_what_was_given(options, query, run, wire):
    wire.answer("GET /v1/effects", {"effects": [], "next": None})
    assert run("effects", "list", *options).stdout == "No effect matches.\n"
    assert dict(wire.requests[0].url.params) == query


def test_list_says_how_to_go_on(run, wire):
    wire.answer("GET /v1/effects", {"effects": [EFFECT], "next": "page-2"})
    assert "--after page-2" in run("effects", "list").stdout


def test_show_tells_the_story_in_order(run, wire):
    story = {
        "events": [
            {
                "number": number,
                "transition": transition,
                "to_state": state,
                "fence": 1,
                "at": f"2026-01-02T03:04:{number:02}.5Z",
                "actor": "agent",
                "reason": None,
            }
            for number, transition, state in [
                (1, "T1", "PLANNED"),
                (2, "T2", "DISPATCHED"),
                (3, "T4", "UNKNOWN"),
            ]
        ],
        "attempts": [],
        "evidence": [{"source": "http", "answer": "absent", "observed_at": "2026-01-02T03:05:00Z"}],
    }
    wire.answer(f"GET /v1/effects/{EFFECT_ID}", {**EFFECT, **story})
    out = run("effects", "show", EFFECT_ID, env={"COLUMNS": "120"}).stdout
    places = [out.index(each) for each in ("03:04:01Z", "03:04:02Z", "03:04:03Z", "absent")]
    assert places == sorted(places)
    assert "Attempts" not in out
    assert f"{EFFECT_ID}  QUARANTINED" in out
    assert '{"invoice": "INV-7"}' in out


@pytest.mark.parametrize("group", ["effects", "quarantine"])
def test_resolve_sends_the_decision(run, wire, group):
    wire.answer(f"POST /v1/effects/{EFFECT_ID}/resolve", {**EFFECT, "state": "FAILED"})
    result = run(
        *(group, "resolve", EFFECT_ID, "--to", "failed", "--reason", "bounced"),
        *("--evidence", "ticket 7", "--by", "ada"),
    )
    assert result.exit_code == 0
    assert "FAILED" in result.stdout
    assert wire.sent()[0][1] == {
        "to": "FAILED",
        "reason": "bounced",
        "evidence": "ticket 7",
        "by": "ada",
    }


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([], {"reason": "try it"}),
        (["--evidence", "ticket 7"], {"reason": "try it", "evidence": "ticket 7"}),
    ],
)
def test_retry_sends_the_reason_and_the_evidence_if_any(run, wire, given, sent):
    wire.answer(f"POST /v1/effects/{EFFECT_ID}/retry", {**EFFECT, "state": "RETRYABLE"})
    result = run("effects", "retry", EFFECT_ID, "--reason", "try it", *given)
    assert "RETRYABLE" in result.stdout
    assert wire.sent()[0][1] == sent


def test_evidence_sends_what_was_seen_and_when(run, wire):
    wire.answer(f"POST /v1/effects/{EFFECT_ID}/evidence", {**EFFECT, "state": "UNKNOWN"})
    told = ("effects", "evidence", EFFECT_ID, "--answer", "in_progress", "--detail", "ticket 7")
    assert "UNKNOWN" in run(*told).stdout
    sent = wire.sent()[0][1]
    assert datetime.fromisoformat(sent.pop("observed_at")).tzinfo is UTC
    assert sent == {"answer": "in_progress", "detail": "ticket 7"}
    run(*told, "--observed-at", "2026-01-02T03:04:05Z", "--provider-reference", "inv_1")
    assert wire.sent()[1][1] == {
        "answer": "in_progress",
        "observed_at": "2026-01-02T03:04:05Z",
        "detail": "ticket 7",
        "provider_reference": "inv_1",
    }


@pytest.mark.parametrize(("state", "says"), [("QUARANTINED", True), ("PLANNED", False)])
def test_a_list_with_quarantined_work_says_where_to_go_on(run, wire, state, says):
    wire.answer("GET /v1/effects", {"effects": [{**EFFECT, "state": state}], "next": None})
    assert ("registry quarantine list" in run("effects", "list").stdout) == says


def test_cancel_sends_the_reason(run, wire):
    wire.answer(f"POST /v1/effects/{EFFECT_ID}/cancel", {**EFFECT, "state": "CANCELLED"})
    assert run("effects", "cancel", EFFECT_ID, "--reason", "not wanted").exit_code == 0
    assert wire.sent()[0][1] == {"reason": "not wanted"}
