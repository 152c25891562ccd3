"""Commands that use a `PolicyRuntime`, run under a policy in processes of their own."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
POLICY = "examples/policies/safe_refund.yaml"
TOOLS = """\
from typing import Any


def lookup_order(order_id: str) -> dict[str, Any]:
    return {"total": 150, "customer_email": "ada@shop.example"}


def check_refund_eligibility(order_id: str) -> dict[str, Any]:
    return {"eligible": True}


def issue_refund(order_id: str, amount: int) -> dict[str, Any]:
    print("refunded", amount)
    return {"refunded": amount}


def with_tools(runtime):
    for tool in (lookup_order, check_refund_eligibility, issue_refund):
        runtime.tool(tool.__name__)(tool)
    return runtime


def refund(runtime, amount):
    runtime.call("lookup_order", order_id="O-1")
    runtime.call("check_refund_eligibility", order_id="O-1")
    return runtime.call("issue_refund", order_id="O-1", amount=amount)
"""


@pytest.fixture
def started(tmp_path):
    """Run a program under the example's policy; return what the command said."""

    def start(program, *options, policy=POLICY):
        (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
        runner = tmp_path / "runner.py"
        runner.write_text(f"from tools import *\n{program}", encoding="utf-8")
        command = shlex.join([sys.executable, str(runner)])
        arguments = ["run", policy, "--runner-cmd", command, "--json", *options]
        return subprocess.run(
            [sys.executable, "-m", "cli", "policy", *arguments],
            cwd=ROOT,
            env={name: text for name, text in os.environ.items() if "TALLYSTICK" not in name},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


def test_a_program_that_dies_of_a_refusal_has_failed_by_the_refusal(started):
    result = started(
        "from tallystick import PolicyRuntime\n"
        "runtime = with_tools(PolicyRuntime.from_environment())\n"
        "runtime.call('issue_refund', order_id='O-1', amount=5)\n"
    )
    answer = json.loads(result.stdout)
    assert result.returncode == 1
    assert (answer["verdict"], answer["reason"], answer["exit_status"]) == ("fail", None, 1)
    assert "PolicyBlocked" in result.stderr
    assert "refunded" not in result.stderr


def test_what_a_person_let_run_ran(started):
    result = started(
        "from tallystick import Approval, PolicyRuntime\n"
        "def approve(request): return Approval(True, by='grace')\n"
        "refund(with_tools(PolicyRuntime.from_environment(approve=approve)), 120)\n"
    )
    answer = json.loads(result.stdout)
    assert (result.returncode, answer["verdict"]) == (0, "pass")
    assert answer["calls"][-1]["approved_by"] == "grace"
    assert "refunded 120" in result.stderr


def test_what_a_person_refused_has_failed(started):
    result = started(
        "from tallystick import PolicyRuntime\n"
        "runtime = with_tools(PolicyRuntime.from_environment(approve=lambda request: False))\n"
        "refund(runtime, 120)\n"
    )
    answer = json.loads(result.stdout)
    assert (result.returncode, answer["verdict"]) == (1, "fail")
    assert answer["calls"][-1]["code"] == "approval_rejected"
    assert "refunded" not in result.stderr


def test_wrong_arguments_and_unknown_tools_fail_it_too(started):
    result = started(
        "from tallystick import PolicyRuntime\n"
        "runtime = with_tools(PolicyRuntime.from_environment())\n"
        "runtime.answer('lookup_order', {'order': 'O-1'})\n"
        "runtime.answer('no_such_tool', '{}')\n"
    )
    answer = json.loads(result.stdout)
    assert answer["verdict"] == "fail"
    assert [each["gate"] for each in answer["calls"]] == ["arguments", "contract"]


def test_a_tool_that_fails_has_run(started):
    result = started(
        "from tallystick import PolicyRuntime\n"
        "runtime = PolicyRuntime.from_environment()\n"
        "@runtime.tool('lookup_order')\n"
        "def broken(order_id: str) -> dict[str, Any]:\n"
        "    raise OSError('away')\n"
        "runtime.answer('lookup_order', {'order_id': 'O-1'})\n"
    )
    answer = json.loads(result.stdout)
    assert (answer["verdict"], answer["calls"][0]["gate"]) == ("pass", "service")


def test_an_asynchronous_program_is_held_to_it_as_well(started):
    result = started(
        "import asyncio\n"
        "from tallystick import PolicyRuntime\n"
        "runtime = with_tools(PolicyRuntime.from_environment())\n"
        "asyncio.run(runtime.aanswer('issue_refund', {'order_id': 'O-1', 'amount': 5}))\n"
    )
    assert json.loads(result.stdout)["calls"][0]["rule"] == "refund-requires-order-lookup"


def test_a_recorded_run_is_replayed_as_it_was(started, tmp_path):
    trace = tmp_path / "trace.jsonl"
    program = (
        "from tallystick import PolicyRuntime\n"
        "runtime = with_tools(PolicyRuntime.from_environment())\n"
        "refund(runtime, 5)\n"
        "runtime.answer('issue_refund', {'order_id': 'O-1', 'amount': 5})\n"
    )
    assert json.loads(started(program, "--record", str(trace)).stdout)["verdict"] == "fail"
    replayed = subprocess.run(
        [sys.executable, "-m", "cli", "policy", "replay", POLICY, str(trace), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    answer = json.loads(replayed.stdout)
    assert (replayed.returncode, answer["changed"], answer["unknown"]) == (0, 0, 0)
    assert answer["calls"][-1]["after"]["rule"] == "budgets.max_high_risk_calls"


def test_several_runs_of_one_program_are_told_apart(started, tmp_path):
    trace = tmp_path / "trace.jsonl"
    # One refund a run is what the budget allows.
    result = started(
        "from tallystick import PolicyRuntime\n"
        "runtime = with_tools(PolicyRuntime.from_environment())\n"
        "for each in (runtime, runtime.for_run(), runtime.for_run()):\n"
        "    refund(each, 5)\n",
        "--record",
        str(trace),
    )
    assert json.loads(result.stdout)["verdict"] == "pass"
    replayed = subprocess.run(
        [sys.executable, "-m", "cli", "policy", "replay", POLICY, str(trace)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert replayed.returncode == 0, replayed.stdout


def test_a_program_that_takes_another_policy_has_failed(started, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(
        'version: "0.2"\nid: other\ntools: {issue_refund: {risk: read}}\n', encoding="utf-8"
    )
    result = started(
        "from tallystick import PolicyRuntime\n"
        f"runtime = with_tools(PolicyRuntime.from_file({str(other)!r}))\n"
        "runtime.call('issue_refund', order_id='O-1', amount=5)\n"
    )
    answer = json.loads(result.stdout)
    assert (result.returncode, answer["verdict"]) == (1, "fail")
    assert answer["reason"].startswith("Another policy was in force")
