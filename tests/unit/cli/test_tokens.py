"""`registry tokens`: what is sent, and what a person is shown once."""

import pytest

TOKEN_ID = "0198c5f2-0000-7000-8000-000000000002"
SECRET = "tk_" + "s" * 43
TOKEN = {
    "token_id": TOKEN_ID,
    "name": "agent",
    "prefix": SECRET[:11],
    "principal": "agents/billing",
    "roles": ["auditor", "runtime"],
    "state": "active",
    "created_at": "2026-01-02T03:04:05Z",
    "created_by": "admin",
    "expires_at": None,
    "last_used_at": None,
    "revoked_at": None,
    "replaces": None,
}


def test_what_is_asked_for_is_sent(run, wire):
    wire.answer("POST /v1/tokens", TOKEN | {"token": SECRET})
    roles = ["--role", "runtime", "--role", "auditor"]
    more = ["--principal", "agents/billing", "--expires-in", "90d"]
    result = run("tokens", "create", "agent", *roles, *more)
    assert wire.sent() == [
        (
            "POST /v1/tokens",
            {
                "name": "agent",
                "roles": ["runtime", "auditor"],
                "principal": "agents/billing",
                "expires_in_seconds": 90 * 86400,
            },
        )
    ]
    assert SECRET in result.stdout.splitlines()
    assert "never shown again" in result.stdout


def test_what_is_not_said_is_not_sent(run, wire):
    wire.answer("POST /v1/tokens", TOKEN | {"token": SECRET})
    assert run("tokens", "create", "agent", "--role", "runtime").exit_code == 0
    assert wire.sent() == [("POST /v1/tokens", {"name": "agent", "roles": ["runtime"]})]


@pytest.mark.parametrize(
    ("overlap", "seconds"),
    [([], 3600), (["--overlap", "0s"], 0), (["--overlap", "30m"], 1800)],
)
def test_the_old_one_works_for_an_hour_unless_told_otherwise(run, wire, overlap, seconds):
    route = f"POST /v1/tokens/{TOKEN_ID}/rotate"
    wire.answer(route, TOKEN | {"token": SECRET})
    assert run("tokens", "rotate", TOKEN_ID, *overlap).exit_code == 0
    assert wire.sent() == [(route, {"overlap_seconds": seconds})]


@pytest.mark.parametrize("everything", [False, True])
def test_a_list_shows_no_secret(run, wire, everything):
    wire.answer("GET /v1/tokens", {"tokens": [TOKEN]})
    result = run("tokens", "list", *(["--all"] if everything else []), env={"COLUMNS": "200"})
    assert wire.requests[0].url.params["all"] == str(everything).lower()
    for shown in ("agent", SECRET[:11], TOKEN_ID, "agents/billing", "auditor, runtime", "active"):
        assert shown in result.stdout


@pytest.mark.parametrize("text", ["", "90", "d", "1w", "-1d", "1.5h", "1d ", "٣d", "1" * 10 + "s"])
def test_what_is_no_time_is_wrong_usage(run, wire, text):
    result = run("tokens", "create", "agent", "--role", "runtime", "--expires-in", text)
    assert result.exit_code == 2
    assert "no time such as 90d" in result.stderr
    assert wire.requests == []


def test_a_role_that_is_not_known_is_wrong_usage(run, wire):
    result = run("tokens", "create", "agent", "--role", "root")
    assert result.exit_code == 2
    assert wire.requests == []
