"""The quarantine, as a person sees it at three in the morning."""

from typing import Any

import pytest

EFFECT_ID = "0198c5f2-7a3b-7c1d-8e2f-0123456789ab.9223372036854775807"
PATH = f"/v1/quarantine/{EFFECT_ID}"
REASON = ("--reason", "looked it up")
EVIDENCE = ("--evidence", "ticket 7")
PROPOSAL: dict[str, Any] = {
    "step": 1,
    "fence": 4,
    "status": "proposed",
    "to": "FAILED",
    "by": "ada",
    "proposed_by": None,
    "reason": "never sent",
    "evidence": "the statement",
    "at": "2026-01-02T03:10:00Z",
}
EFFECT: dict[str, Any] = {
    "effect_id": EFFECT_ID,
    "run": "run_0187",
    "effect": "effect_0187_03",
    "tool": "payments.transfer",
    "version": "1.0.0",
    "effect_class": "NON_RETRYABLE",
    "principal": "agent",
    "state": "QUARANTINED",
    "fence": 4,
    "attempt": 1,
    "planned_at": "2026-01-02T03:04:05Z",
    "due_at": None,
    "reason": "inconclusive for good: asked 20 times",
    "cause": "inconclusive",
    "quarantined_at": "2026-01-02T03:05:05Z",
    "age_seconds": 7500.5,
    "arguments": {"to": "DE-1", "cents": 1250},
    "dispatch": None,
    "outcome": None,
    "proposal": None,
}
SHOWN: dict[str, Any] = EFFECT | {
    "advice": "Nobody could say what happened. Ask the provider yourself.",
    "choices": [
        {
            "choice": "FAILED",
            "meaning": "It did not take effect and will not.",
            "people": 2,
            "allowed": True,
            "why_not": None,
        },
        {
            "choice": "RETRYABLE",
            "meaning": "A worker may send it again.",
            "people": 1,
            "allowed": False,
            "why_not": "An effect of class NON_RETRYABLE is never sent again.",
        },
    ],
    "events": [],
    "attempts": [
        {
            "attempt": 1,
            "fence": 1,
            "worker_id": "0198c5f2-0000-7000-8000-000000000001",
            "dispatched_at": "2026-01-02T03:04:05Z",
            "lease_until": "2026-01-02T03:04:35Z",
        }
    ],
    "evidence": [
        {"source": "http", "answer": "unavailable", "observed_at": "2026-01-02T03:05:00Z"}
    ],
    "resolutions": [],
    "idempotency_key": "ts-0123456789",
}


def test_the_list_tells_why_and_for_how_long(run, wire):
    wire.answer("GET /v1/quarantine", {"effects": [EFFECT], "next": "page-2"})
    shown = run("quarantine", "list", "--tool", "payments.transfer", "--version", "1.0").stdout
    assert max(map(len, shown.splitlines())) <= 80
    for told in (EFFECT_ID, "payments.transfer@1.0.0", "inconclusive", "2 h", "--after page-2"):
        assert told in shown, told
    assert "registry quarantine show" in shown
    query = dict(wire.requests[0].url.params)
    assert query == {"tool": "payments.transfer", "version": "1.0", "limit": "50"}


def test_what_one_person_proposed_is_seen_in_the_list(run, wire):
    proposed = EFFECT | {"proposal": PROPOSAL}
    wire.answer("GET /v1/quarantine", {"effects": [proposed], "next": None})
    assert "1 of 2 agreed" in run("quarantine", "list").stdout


def test_nothing_is_a_good_answer(run, wire):
    wire.answer("GET /v1/quarantine", {"effects": [], "next": None})
    assert "Nothing is quarantined" in run("quarantine", "list").stdout


def test_one_look_is_enough_to_decide(run, wire):
    wire.answer(f"GET {PATH}", SHOWN)
    shown = run("quarantine", "show", EFFECT_ID, env={"COLUMNS": "120"}).stdout
    for told in (
        "Ask the provider yourself.",
        "a second call would do it again",
        "for 2 h",
        "DE-1",
        "ts-0123456789",
        "unavailable",
        "Two people have to agree.",
        f"registry quarantine resolve {EFFECT_ID} --to failed --reason TEXT --evidence TEXT",
        "Not open: An effect of class NON_RETRYABLE is never sent again.",
    ):
        assert told in shown, told
    assert "effects retry" not in shown, "what is not allowed is not suggested"


def test_what_nobody_knows_of_an_orphan_is_not_made_up(run, wire):
    unknown = dict.fromkeys(("run", "effect", "principal"))
    orphan = SHOWN | unknown | {"cause": "orphan", "attempts": [], "advice": "A record was lost."}
    wire.answer(f"GET {PATH}", orphan)
    shown = run("quarantine", "show", EFFECT_ID, env={"COLUMNS": "120"}).stdout
    assert "not known: it was sent, and the record of that was lost" in shown
    assert "What the provider tells of it" in shown
    assert "None" not in shown
    assert "it was never sent" not in shown


def test_work_without_an_attempt_was_never_sent(run, wire):
    wire.answer(f"GET {PATH}", SHOWN | {"attempts": []})
    shown = run("quarantine", "show", EFFECT_ID, env={"COLUMNS": "120"}).stdout
    assert "none: it was never sent" in shown
    assert "What was to be sent" in shown


def test_a_proposal_is_shown_with_who_has_to_agree(run, wire):
    wire.answer(f"GET {PATH}", SHOWN | {"proposal": PROPOSAL})
    shown = run("quarantine", "show", EFFECT_ID, env={"COLUMNS": "120"}).stdout
    assert "another principal than ada" in shown
    assert f"registry quarantine withdraw {EFFECT_ID}" in shown


@pytest.mark.parametrize(
    ("arguments", "step", "body"),
    [
        (
            ["abandon", EFFECT_ID, *REASON, *EVIDENCE],
            "resolve",
            {"to": "ABANDONED", "reason": "looked it up", "evidence": "ticket 7"},
        ),
        (["withdraw", EFFECT_ID, *REASON], "withdraw", {"reason": "looked it up"}),
        (
            ["migrate", EFFECT_ID, "--to", "2.0", *REASON],
            "migrate",
            {"version": "2.0", "reason": "looked it up"},
        ),
    ],
)
def test_a_decision_is_sent_with_its_reason(run, wire, arguments, step, body):
    wire.answer(f"POST /v1/effects/{EFFECT_ID}/{step}", EFFECT | {"state": "ABANDONED"})
    result = run("quarantine", *arguments)
    assert result.exit_code == 0
    assert "ABANDONED" in result.stdout
    assert wire.sent()[0][1] == body


def test_who_proposes_is_told_that_nothing_has_changed_yet(run, wire):
    answer = EFFECT | {"proposal": PROPOSAL}
    wire.answer(f"POST /v1/effects/{EFFECT_ID}/resolve", answer)
    shown = run("quarantine", "resolve", EFFECT_ID, "--to", "failed", *REASON, *EVIDENCE).stdout
    assert "Nothing has changed yet." in shown
    assert "by a token of another principal than ada" in shown


@pytest.mark.parametrize("command", ["abandon", "withdraw", "migrate", "resolve"])
def test_nothing_is_decided_without_a_reason(run, wire, command):
    more = {"migrate": ["--to", "2.0"], "resolve": ["--to", "failed"]}.get(command, [])
    result = run("quarantine", command, EFFECT_ID, *more)
    assert result.exit_code == 2
    assert wire.requests == []


def test_what_a_reason_holds_is_shown_as_text(run, wire):
    odd = EFFECT | {"reason": "[bold]x[/bold]\x1b[2J"}
    wire.answer("GET /v1/quarantine", {"effects": [odd], "next": None})
    shown = run("quarantine", "list").stdout
    assert "[bold]x[/bold]" in shown
    assert "\x1b" not in shown
