"""Policies on the command line: what is sent, and for whom."""

import json
from pathlib import Path
from typing import Any

import pytest

PATH = "/v1/policies/safe-refund"
REVISION: dict[str, Any] = {
    "policy": "safe-refund",
    "revision": 2,
    "current_revision": 2,
    "digest": "sha256:" + "c" * 64,
    "published_at": "2026-01-02T03:04:05Z",
    "published_by": "admin",
    "assigned_to": ["*", "agent"],
}
WARNING = {"code": "fact_unread", "line": 4, "column": 5, "message": "Nothing reads it."}
PUBLISHED = REVISION | {"published": True, "warnings": [WARNING]}
FOR = [(["--for", "agent"], "agent", "agent"), (["--for-everybody"], "*", "everybody")]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "safe-refund.yaml"
    path.write_bytes("\ufeff# ä\nid: safe-refund\n".encode())
    return str(path)


def test_a_policy_is_sent_as_it_is_written(run, wire, file):
    wire.answer("POST /v1/policies", PUBLISHED)
    result = run("policy", "publish", file)
    assert result.exit_code == 0
    assert wire.sent() == [("POST /v1/policies", {"text": "# ä\nid: safe-refund\n"})]
    assert "published safe-refund revision 2" in result.stdout
    assert "Warning: 4:5 Nothing reads it." in result.stdout


@pytest.mark.parametrize(("options", "principal", "whom"), FOR)
def test_it_is_published_and_assigned_at_once(run, wire, file, options, principal, whom):
    assignment = {"policy": "safe-refund", "principal": principal, "assigned": True}
    wire.answer("POST /v1/policies", PUBLISHED)
    wire.answer(f"POST {PATH}/assignments", assignment)
    result = run("policy", "publish", file, *options)
    assert wire.sent()[1] == (f"POST {PATH}/assignments", {"principal": principal})
    assert f"safe-refund now decides of the calls of {whom}." in result.stdout
    shown = json.loads(run("policy", "publish", file, *options, "--json").stdout)
    assert shown == PUBLISHED | {"assignment": assignment}


def test_what_is_published_is_told_though_it_is_not_assigned(run, wire, file):
    wire.answer("POST /v1/policies", PUBLISHED)
    wire.refuse(f"POST {PATH}/assignments", "forbidden", status=403)
    result = run("policy", "publish", file, "--for", "agent")
    assert result.exit_code == 1
    assert "published safe-refund revision 2" in result.stdout
    assert "forbidden" in result.stderr


def test_every_fault_is_told_with_its_place(run, wire, file):
    faults = [
        {"line": 7, "column": 3, "pointer": "/tools", "message": "The first one."},
        {"line": 9, "column": 11, "pointer": "/rules/0/effect", "message": "The second one."},
    ]
    wire.refuse("POST /v1/policies", "invalid_policy", status=422, facts={"faults": faults})
    result = run("policy", "publish", file)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "7:3 The first one." in result.stderr
    assert "9:11 The second one." in result.stderr


@pytest.mark.parametrize(("options", "principal", "whom"), FOR)
def test_it_is_said_whose_calls_it_decides_of(run, wire, options, principal, whom):
    answer = {"policy": "safe-refund", "principal": principal, "assigned": False}
    wire.answer(f"POST {PATH}/assignments", answer)
    wire.answer(f"DELETE {PATH}/assignments", {})
    assigned = run("policy", "assign", "safe-refund", *options)
    assert f"already decides of the calls of {whom}." in assigned.stdout
    unassigned = run("policy", "unassign", "safe-refund", *options)
    assert f"decides no longer of the calls of {whom}." in unassigned.stdout
    assert wire.sent()[0][1] == {"principal": principal}
    assert dict(wire.requests[1].url.params) == {"principal": principal}
    shown = run("policy", "unassign", "safe-refund", *options, "--json").stdout
    assert json.loads(shown) == answer


@pytest.mark.parametrize("command", ["assign", "unassign", "publish"])
def test_it_is_for_one_or_for_everybody(run, wire, file, command):
    what = file if command == "publish" else "safe-refund"
    both = run("policy", command, what, "--for", "agent", "--for-everybody")
    assert both.exit_code == 2
    if command != "publish":
        assert run("policy", command, what).exit_code == 2
    assert wire.requests == []


def test_the_one_in_force_is_shown(run, wire):
    wire.answer("GET /v1/whoami", {"tenant": "default", "principal": "me", "roles": ["admin"]})
    wire.answer("GET /v1/policies", {"policies": [REVISION]})
    wire.answer(f"GET {PATH}", REVISION | {"text": "id: safe-refund\n# [bold]the end[/bold]\n"})
    shown = run("policy", "show")
    assert "\n  id: safe-refund\n  # [bold]the end[/bold]\n" in shown.stdout
    assert "everybody, agent" in shown.stdout
    assert "superseded" not in shown.stdout
    run("policy", "show", "--for", "billing/agent")
    asked = [dict(request.url.params) for request in wire.requests]
    assert asked == [{}, {"in_force_for": "me"}, {}, {"in_force_for": "billing/agent"}, {}]
    wire.answers["GET /v1/policies"] = [(200, {"policies": []})]
    none = run("policy", "show")
    assert (none.exit_code, none.stdout) == (1, "")
    assert "No policy is in force for me." in none.stderr


def test_an_older_revision_says_by_what_it_is_superseded(run, wire):
    wire.answer(f"GET {PATH}", REVISION | {"current_revision": 4, "text": "id: safe-refund\n"})
    shown = run("policy", "show", "safe-refund", "--revision", "2")
    assert dict(wire.requests[0].url.params) == {"revision": "2"}
    assert "revision 4" in shown.stdout
    for wrong in (["--revision", "2"], ["safe-refund", "--for", "agent"]):
        assert run("policy", "show", *wrong).exit_code == 2


def test_what_is_no_text_is_not_sent(run, wire, tmp_path: Path):
    (tmp_path / "policy.yaml").write_bytes(b"\xff\xfe")
    assert run("policy", "publish", str(tmp_path / "policy.yaml")).exit_code == 2
    assert wire.requests == []
