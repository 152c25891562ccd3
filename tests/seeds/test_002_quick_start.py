"""The quick start and the demo outputs, as somebody types them: processes, files and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
POLICY = "examples/policies/safe_refund.yaml"


def registry(*arguments):
    """Run the command with nothing of Tallystick's in its environment: no service is anywhere."""
    environment = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("TALLYSTICK_", "DATABASE_URL", "GITHUB_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "cli", "policy", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def demo(name, *options):
    runner = f"{sys.executable} examples/runners/{name}.py"
    return registry("run", POLICY, "--runner-cmd", runner, *options)


def test_help():
    result = registry("--help")
    assert result.returncode == 0
    for name in ("lint", "test", "explain", "run", "replay", "init", "presets"):
        assert f"│ {name} " in result.stdout


def test_lint_a_policy():
    result = registry("lint", POLICY, "--strict")
    assert (result.returncode, result.stderr) == (0, "")


def test_the_good_refund_passes_and_every_tool_executes():
    result = demo("good_refund")
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1].startswith("PASS ")
    assert "refunded 42 for ORD-001" in result.stderr
    assert "mailed ada@shop.example" in result.stderr


def test_the_bad_refund_fails_before_the_function_runs():
    result = demo("bad_refund")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1].startswith("FAIL ")
    assert "refund-requires-order-lookup" in result.stdout
    assert "refunded" not in result.stderr
    assert "call lookup_order first" in result.stderr


def test_the_large_refund_needs_a_human_and_the_function_never_runs():
    result = demo("large_refund")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1].startswith("NEEDS HUMAN ")
    assert "large-refund-needs-human" in result.stdout
    assert "refunded" not in result.stderr


@pytest.mark.parametrize(
    ("name", "verdict", "decisions"),
    [
        ("good_refund", "pass", ["allow", "allow", "allow", "allow"]),
        ("bad_refund", "fail", ["block"]),
        ("large_refund", "needs_human", ["allow", "allow", "needs_human"]),
    ],
)
def test_programs_tell_the_three_apart(name, verdict, decisions):
    answer = json.loads(demo(name, "--json").stdout)
    assert answer["verdict"] == verdict
    assert [each["decision"] for each in answer["calls"]] == decisions


# --- "intentionally not built yet", and the roadmap -----------------------------------------------


def test_trace_replay(tmp_path):
    trace = tmp_path / "trace.jsonl"
    assert demo("large_refund", "--record", str(trace)).returncode == 1
    assert registry("replay", POLICY, str(trace)).returncode == 0
    generous = tmp_path / "generous.yaml"
    text = (ROOT / POLICY).read_text(encoding="utf-8")
    generous.write_text(text.replace("value: 100 ", "value: 500 "), encoding="utf-8")
    answer = json.loads(registry("replay", str(generous), str(trace), "--json").stdout)
    assert [each["after"]["decision"] for each in answer["calls"]] == ["allow"] * 3
    assert (answer["changed"], answer["unknown"]) == (1, 0)


def test_github_actions_summary_rendering(tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    runner = f"{sys.executable} examples/runners/bad_refund.py"
    subprocess.run(
        [
            *(sys.executable, "-m", "cli", "policy", "run", POLICY),
            *("--runner-cmd", runner, "--format", "github"),
        ],
        cwd=ROOT,
        env={**os.environ, "GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    told = summary.read_text(encoding="utf-8")
    assert told.startswith("### FAIL safe-refund\n")
    assert "| <code>refund-requires-order-lookup</code> |" in told


def test_policy_presets_for_common_workflows(tmp_path):
    names = [each["preset"] for each in json.loads(registry("presets", "--json").stdout)["presets"]]
    assert names
    for name in names:
        file = tmp_path / f"{name}.yaml"
        assert registry("init", name, "--output", str(file)).returncode == 0
        cases = tmp_path / f"{name}.cases.yaml"
        assert registry("test", str(file), str(cases)).returncode == 0
